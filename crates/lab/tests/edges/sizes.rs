//! Limits the length of files and functions, so that each can be read at one sitting.

use std::collections::BTreeSet;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::source::{CRATES, File, Source};

/// Lines of code in a file, without blank lines, comments and tests.
const FILE_LINES_MAX: usize = 450;

const FUNCTION_LINES_MAX: usize = 70;

#[test]
fn files_and_functions_are_short() {
    let (mut long_files, mut long_functions) = (BTreeSet::new(), BTreeSet::new());
    for name in CRATES {
        for (path, file) in &Source::read(name).files {
            let lines = Lines::of(file);
            if lines.code.len() > FILE_LINES_MAX {
                long_files.insert((format!("{name}/{path}"), lines.code.len()));
            }
            for (function, length) in lines.functions {
                if length > FUNCTION_LINES_MAX {
                    long_functions.insert((format!("{name}/{path}::{function}"), length));
                }
            }
        }
    }
    assert!(long_files.is_empty(), "longer than a file's {FILE_LINES_MAX} lines: {long_files:#?}");
    assert!(
        long_functions.is_empty(),
        "longer than a function's {FUNCTION_LINES_MAX} lines: {long_functions:#?}"
    );
}

/// The lines of a file on which code stands, and its functions' lengths.
struct Lines<'file> {
    text: Vec<&'file str>,
    code: BTreeSet<usize>,
    functions: Vec<(String, usize)>,
}

impl<'file> Lines<'file> {
    fn of(file: &'file File) -> Lines<'file> {
        let text = file.text.lines().collect();
        let mut lines = Lines { text, code: BTreeSet::new(), functions: Vec::new() };
        for item in &file.parsed.items {
            let span = item.span();
            let code = lines.code(span.start().line, span.end().line);
            lines.code.extend(code);
        }
        lines.visit_file(&file.parsed);
        lines
    }

    fn code(&self, first: usize, last: usize) -> BTreeSet<usize> {
        let holds_code = |number: &usize| {
            let line = self.text[number - 1].trim_start();
            !line.is_empty() && !line.starts_with("//")
        };
        (first..=last).filter(holds_code).collect()
    }

    fn add(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let span = block.span();
        let length = self.code(span.start().line, span.end().line).len();
        self.functions.push((signature.ident.to_string(), length));
    }
}

impl<'ast> Visit<'ast> for Lines<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.add(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.add(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }
}
