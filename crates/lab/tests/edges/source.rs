//! The source of a crate as a compiler sees it: files by module, without items that are built for tests alone.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};

pub const CRATES: [&str; 6] = ["ssp", "term", "session", "streams", "rove", "lab"];

/// The names that lead to a module from the root of its crate.
pub type Module = Vec<String>;

pub struct Source {
    /// The files of the library, by their path below `src`.
    pub files: BTreeMap<String, File>,
    /// Which file each module is in: its own, or that of the module around it.
    pub modules: BTreeMap<Module, String>,
}

pub struct File {
    pub module: Module,
    pub text: String,
    pub parsed: syn::File,
}

/// The workspace's directory.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

impl Source {
    /// Reads `crates/NAME/src`, but for files that only tests are built from.
    pub fn read(name: &str) -> Source {
        let src = root().join("crates").join(name).join("src");
        let mut source = Source { files: BTreeMap::new(), modules: BTreeMap::new() };
        source.read_module(&src, "lib.rs", Vec::new());
        source
    }

    fn read_module(&mut self, src: &Path, path: &str, module: Module) {
        let text = fs::read_to_string(src.join(path)).unwrap();
        let mut parsed = syn::parse_file(&text).unwrap();
        drop_tests(&mut parsed.items);
        let items = parsed.items.clone();
        self.modules.insert(module.clone(), path.to_owned());
        let file = File { module: module.clone(), text, parsed };
        self.files.insert(path.to_owned(), file);
        self.read_children(src, path, &module, &items);
    }

    fn read_children(&mut self, src: &Path, path: &str, module: &Module, items: &[syn::Item]) {
        for item in items {
            let syn::Item::Mod(item) = item else { continue };
            let mut child = module.clone();
            child.push(item.ident.to_string());
            if let Some((_, items)) = &item.content {
                self.modules.insert(child.clone(), path.to_owned());
                self.read_children(src, path, &child, items);
                continue;
            }
            let stem = child.join("/");
            let own = [format!("{stem}.rs"), format!("{stem}/mod.rs")];
            let own = own.iter().find(|path| src.join(path).exists());
            self.read_module(src, own.unwrap_or_else(|| panic!("no file of {stem}")), child);
        }
    }
}

/// Removes items that are built for tests alone, in this list and in its modules.
fn drop_tests(items: &mut Vec<syn::Item>) {
    items.retain(|item| !attributes(item).iter().any(is_for_tests));
    for item in items {
        match item {
            syn::Item::Mod(syn::ItemMod { content: Some((_, items)), .. }) => drop_tests(items),
            syn::Item::Impl(item) => {
                item.items.retain(|item| match item {
                    syn::ImplItem::Fn(item) => !item.attrs.iter().any(is_for_tests),
                    syn::ImplItem::Const(item) => !item.attrs.iter().any(is_for_tests),
                    _ => true,
                });
            }
            _ => {}
        }
    }
}

fn is_for_tests(attribute: &syn::Attribute) -> bool {
    attribute.path().is_ident("cfg")
        && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
}

fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    use syn::Item::{
        Const, Enum, ExternCrate, Fn, Impl, Macro, Mod, Static, Struct, Trait, Type, Union, Use,
    };
    match item {
        Const(item) => &item.attrs,
        Enum(item) => &item.attrs,
        ExternCrate(item) => &item.attrs,
        Fn(item) => &item.attrs,
        Impl(item) => &item.attrs,
        Macro(item) => &item.attrs,
        Mod(item) => &item.attrs,
        Static(item) => &item.attrs,
        Struct(item) => &item.attrs,
        Trait(item) => &item.attrs,
        Type(item) => &item.attrs,
        Union(item) => &item.attrs,
        Use(item) => &item.attrs,
        _ => &[],
    }
}

/// All paths of two names and more in a file, with the module that each stands in.
pub struct Paths {
    module: Module,
    pub found: Vec<(Module, Vec<String>)>,
}

impl Paths {
    pub fn of(file: &File) -> Paths {
        let mut paths = Paths { module: file.module.clone(), found: Vec::new() };
        paths.visit_file(&file.parsed);
        paths
    }

    fn add(&mut self, path: Vec<String>) {
        if path.len() > 1 {
            self.found.push((self.module.clone(), path));
        }
    }

    fn add_tree(&mut self, before: &[String], tree: &syn::UseTree) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            syn::UseTree::Path(tree) => self.add_tree(&with(&tree.ident), &tree.tree),
            syn::UseTree::Name(tree) if tree.ident == "self" => self.add(before.to_vec()),
            syn::UseTree::Name(tree) => self.add(with(&tree.ident)),
            syn::UseTree::Rename(tree) => self.add(with(&tree.ident)),
            syn::UseTree::Glob(_) => self.add([before, &["*".to_owned()]].concat()),
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.add_tree(before, tree));
            }
        }
    }

    /// A macro's arguments are no syntax before it is expanded; names between `::` are paths all the same.
    fn add_tokens(&mut self, tokens: proc_macro2::TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                proc_macro2::TokenTree::Punct(punct) if punct.as_char() == ':' => {
                    colons += 1;
                    continue;
                }
                proc_macro2::TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.add(std::mem::take(&mut path));
                    }
                    path.push(name.to_string());
                }
                proc_macro2::TokenTree::Group(group) => {
                    self.add(std::mem::take(&mut path));
                    self.add_tokens(group.stream());
                }
                _ => self.add(std::mem::take(&mut path)),
            }
            colons = 0;
        }
        self.add(path);
    }
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if item.content.is_some() {
            self.module.push(item.ident.to_string());
            visit::visit_item_mod(self, item);
            self.module.pop();
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.add_tree(&[], &item.tree);
    }

    /// `pub(in crate::a)` restricts visibility; it is not an import.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.add(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        self.add_tokens(item.tokens.clone());
        visit::visit_macro(self, item);
    }
}
