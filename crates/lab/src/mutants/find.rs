//! Finds the places of a crate's source at which a small fault can be put: comparisons, conditions, arithmetic,
//! numbers, calls without a value, and functions that could return at once.
//!
//! Not looked at: items with a `cfg` (tests among them), constants and other expressions that the compiler evaluates,
//! patterns, types, arguments of macros, and the texts of `Debug` and `Display`.

use std::io;
use std::ops::Range;
use std::path::Path;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::mutant::{Form, Mutant};
use crate::files::read_text;

/// Mutants of some files.
#[derive(Default)]
pub(crate) struct Found {
    pub mutants: Vec<Mutant>,
    /// Lines of functions in which mutants were looked for.
    pub lines: usize,
}

/// Finds all mutants of a crate whose files, named from the root, begin with one of these paths. `library` is the file
/// from which the crate's modules are followed.
///
/// # Errors
/// If a file cannot be read or parsed.
pub(crate) fn find(root: &Path, library: &str, within: &[String]) -> io::Result<Found> {
    let mut found = Found::default();
    let directory = library.rsplit_once('/').map_or("", |(directory, _)| directory);
    let mut left = vec![(library.to_owned(), directory.to_owned())];
    while let Some((file, children)) = left.pop() {
        let text = read_text(&root.join(&file), FILE_BYTES_MAX)?;
        let parsed =
            syn::parse_file(&text).map_err(|error| io::Error::other(format!("{file}: {error}")))?;
        for item in &parsed.items {
            let syn::Item::Mod(syn::ItemMod { attrs, ident, content: None, .. }) = item else {
                continue;
            };
            if is_conditional(attrs) {
                continue;
            }
            let stem = format!("{children}/{ident}");
            let own = [format!("{stem}.rs"), format!("{stem}/mod.rs")];
            // A module with a path of its own is one of a system.
            if let Some(own) = own.into_iter().find(|path| root.join(path).exists()) {
                left.push((own, stem));
            }
        }
        if within.iter().any(|path| file.starts_with(path)) && !is_for_tests(&file) {
            in_text(&file, &text, &parsed, &mut found);
        }
    }
    found.mutants.sort_by(|a, b| (&a.file, a.span.start).cmp(&(&b.file, b.span.start)));
    Ok(found)
}

/// The longest source file.
const FILE_BYTES_MAX: u64 = 4 << 20;

fn is_for_tests(file: &str) -> bool {
    ["/testing.rs", "/buggify.rs", "/tests.rs"].iter().any(|end| file.ends_with(end))
}

fn is_conditional(attributes: &[syn::Attribute]) -> bool {
    attributes
        .iter()
        .any(|attribute| attribute.path().is_ident("cfg") || attribute.path().is_ident("test"))
}

fn in_text(file: &str, text: &str, parsed: &syn::File, found: &mut Found) {
    let mut lines = vec![0];
    lines.extend(text.match_indices('\n').map(|(at, _)| at + 1));
    Finder { file, text, lines, found }.visit_file(parsed);
}

struct Finder<'text> {
    file: &'text str,
    text: &'text str,
    /// Where each line begins.
    lines: Vec<usize>,
    found: &'text mut Found,
}

impl Finder<'_> {
    fn spelled(&self, spanned: &impl Spanned) -> &str {
        &self.text[range(spanned)]
    }

    fn add(&mut self, operator: &'static str, spanned: &impl Spanned, mutated: String, form: Form) {
        let original = self.spelled(spanned).to_owned();
        self.add_at(operator, range(spanned), original, mutated, form);
    }

    fn add_at(
        &mut self,
        operator: &'static str,
        span: Range<usize>,
        original: String,
        mutated: String,
        form: Form,
    ) {
        let line = self.lines.partition_point(|start| *start <= span.start);
        let file = self.file.to_owned();
        self.found.mutants.push(Mutant { file, line, operator, span, original, mutated, form });
    }

    /// A condition of an `if` or of an arm.
    fn condition(&mut self, condition: &syn::Expr) {
        // What `let` binds holds only where it stands.
        if !has_let(condition) {
            let mutated = format!("!({})", self.spelled(condition));
            self.add("condition", condition, mutated, Form::Opposite);
        }
    }

    fn binary(&mut self, binary: &syn::ExprBinary) {
        let (left, right) = (self.spelled(&binary.left), self.spelled(&binary.right));
        let operator = self.spelled(&binary.op);
        let (kind, others): (&'static str, &[&str]) = match operator {
            "<" => ("relation", &["<=", ">="]),
            "<=" => ("relation", &["<", ">"]),
            ">" => ("relation", &[">=", "<="]),
            ">=" => ("relation", &[">", "<"]),
            "==" => ("relation", &["!="]),
            "!=" => ("relation", &["=="]),
            "&&" => ("logic", &["||"]),
            "||" => ("logic", &["&&"]),
            "+" => ("arithmetic", &["-"]),
            "-" => ("arithmetic", &["+"]),
            "*" => ("arithmetic", &["/"]),
            "/" => ("arithmetic", &["*"]),
            "%" => ("arithmetic", &["/"]),
            "<<" => ("bits", &[">>"]),
            ">>" => ("bits", &["<<"]),
            "&" => ("bits", &["|"]),
            "|" => ("bits", &["&"]),
            "^" => ("bits", &["&"]),
            "+=" => ("assignment", &["-="]),
            "-=" => ("assignment", &["+="]),
            "*=" => ("assignment", &["/="]),
            "|=" => ("assignment", &["&="]),
            "&=" => ("assignment", &["|="]),
            _ => return,
        };
        let mutated: Vec<String> =
            others.iter().map(|other| format!("{left} {other} {right}")).collect();
        for mutated in mutated {
            self.add(kind, binary, mutated, Form::Either);
        }
    }

    fn function(
        &mut self,
        attributes: &[syn::Attribute],
        signature: &syn::Signature,
        block: &syn::Block,
    ) -> bool {
        if is_conditional(attributes) || signature.constness.is_some() || signature.ident == "laws"
        {
            return false;
        }
        let span = block.span();
        self.found.lines += span.end().line + 1 - span.start().line;
        if block.stmts.is_empty() {
            return true;
        }
        let at = block.brace_token.span.open().byte_range().end;
        let mut defaults: Vec<String> = Vec::new();
        match &signature.output {
            syn::ReturnType::Default => defaults.push("return".to_owned()),
            syn::ReturnType::Type(_, output) => {
                let spelled = self.spelled(output);
                let values: &[&str] = match spelled {
                    "bool" => &["false", "true"],
                    "u8" | "u16" | "u32" | "u64" | "u128" | "usize" | "i32" | "i64" => &["0", "1"],
                    "Duration" => &["Duration::ZERO"],
                    _ if spelled.starts_with("Option<") => &["None"],
                    _ if spelled.starts_with("Result<(),") => &["Ok(())"],
                    _ => &[],
                };
                defaults.extend(values.iter().map(|value| format!("return {value}")));
            }
        }
        for default in defaults {
            let original = format!("fn {}", signature.ident);
            self.add_at("function", at..at, original, default, Form::Return);
        }
        true
    }
}

/// The octets of the file.
fn range(spanned: &impl Spanned) -> Range<usize> {
    spanned.span().byte_range()
}

/// Whether a condition binds names.
fn has_let(condition: &syn::Expr) -> bool {
    match condition {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        syn::Expr::Paren(inner) => has_let(&inner.expr),
        _ => false,
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
    fn visit_macro(&mut self, _: &'ast syn::Macro) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_generics(&mut self, _: &'ast syn::Generics) {}
    fn visit_path(&mut self, _: &'ast syn::Path) {}
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_item_enum(&mut self, _: &'ast syn::ItemEnum) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}

    fn visit_pat(&mut self, pattern: &'ast syn::Pat) {
        if let syn::Pat::Guard(guarded) = pattern {
            self.condition(&guarded.guard);
            self.visit_expr(&guarded.guard);
        }
    }

    fn visit_expr_repeat(&mut self, repeat: &'ast syn::ExprRepeat) {
        self.visit_expr(&repeat.expr);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_conditional(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let of = item.trait_.as_ref().and_then(|(path, _)| path.segments.last());
        let is_text = of.is_some_and(|of| of.ident == "Debug" || of.ident == "Display");
        if !is_text && !is_conditional(&item.attrs) {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if self.function(&item.attrs, &item.sig, &item.block) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if self.function(&item.attrs, &item.sig, &item.block) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        let Some(block) = &item.default else { return };
        if self.function(&item.attrs, &item.sig, block) {
            visit::visit_trait_item_fn(self, item);
        }
    }

    fn visit_expr_if(&mut self, expression: &'ast syn::ExprIf) {
        self.condition(&expression.cond);
        visit::visit_expr_if(self, expression);
    }

    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        let bound = has_let(&binary.left) || has_let(&binary.right);
        if !bound {
            self.binary(binary);
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_unary(&mut self, unary: &'ast syn::ExprUnary) {
        if matches!(unary.op, syn::UnOp::Not(_)) {
            let mutated = self.spelled(&unary.expr).to_owned();
            self.add("logic", unary, mutated, Form::Either);
        }
        visit::visit_expr_unary(self, unary);
    }

    fn visit_expr_lit(&mut self, literal: &'ast syn::ExprLit) {
        match &literal.lit {
            syn::Lit::Int(number) => {
                let Ok(value) = number.base10_parse::<u128>() else { return };
                let suffix = number.suffix();
                let mutated = format!("{}{suffix}", value.saturating_add(1));
                self.add("number", literal, mutated, Form::Either);
                if value > 0 {
                    let mutated = format!("{}{suffix}", value - 1);
                    self.add("number", literal, mutated, Form::Either);
                }
            }
            syn::Lit::Bool(bool) => {
                self.add("logic", literal, (!bool.value).to_string(), Form::Either);
            }
            _ => {}
        }
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let name = call.method.to_string();
        if let Some((_, other)) = METHODS.iter().find(|(method, _)| *method == name) {
            let (whole, method) = (range(call), range(&call.method));
            let (before, after) = (whole.start..method.start, method.end..whole.end);
            let mutated = format!("{}{other}{}", &self.text[before], &self.text[after]);
            self.add("method", call, mutated, Form::Either);
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_stmt(&mut self, statement: &'ast syn::Stmt) {
        if let syn::Stmt::Expr(expression, Some(_)) = statement {
            let inner = match expression {
                syn::Expr::Try(tried) => &*tried.expr,
                other => other,
            };
            let is_deed = matches!(
                inner,
                syn::Expr::Call(_) | syn::Expr::MethodCall(_) | syn::Expr::Assign(_)
            );
            if is_deed {
                self.add("statement", statement, String::new(), Form::Without);
            }
        }
        visit::visit_stmt(self, statement);
    }
}

/// Methods whose opposites take the same arguments.
const METHODS: [(&str, &str); 16] = [
    ("saturating_add", "saturating_sub"),
    ("saturating_sub", "saturating_add"),
    ("wrapping_add", "wrapping_sub"),
    ("wrapping_sub", "wrapping_add"),
    ("checked_add", "checked_sub"),
    ("checked_sub", "checked_add"),
    ("min", "max"),
    ("max", "min"),
    ("is_some", "is_none"),
    ("is_none", "is_some"),
    ("is_ok", "is_err"),
    ("is_err", "is_ok"),
    ("any", "all"),
    ("all", "any"),
    ("first", "last"),
    ("last", "first"),
];
