//! The paths that stand in a module: in its imports, its types, its expressions and its macros.

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

use super::module::Module;
use super::uses::leaves;

/// A path, and where it stands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) path: Vec<String>,
    pub(crate) line: usize,
    /// Whether it only makes the name known to others: `pub use`.
    pub(crate) is_re_export: bool,
}

/// All paths of a module, without those of the modules inside it.
pub(crate) fn references(module: &Module<'_>) -> Vec<Reference> {
    let mut visitor = Visitor(Vec::new());
    module.items.iter().for_each(|item| visitor.visit_item(item));
    visitor.0
}

struct Visitor(Vec<Reference>);

impl Visitor {
    fn add(&mut self, path: Vec<String>, line: usize) {
        self.0.push(Reference { path, line, is_re_export: false });
    }

    /// What a macro is given is no syntax of ours, but its paths can be read: `a::b::c`, also behind `$crate`.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut line = 0;
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.end(&mut path, line);
                        line = ident.span().start().line;
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' && colons < 2 => colons += 1,
                TokenTree::Group(group) => {
                    self.end(&mut path, line);
                    colons = 0;
                    self.tokens(group.stream());
                }
                _ => {
                    self.end(&mut path, line);
                    colons = 0;
                }
            }
        }
        self.end(&mut path, line);
    }

    /// A single name in a macro may be anything; one that is imported was counted where it is imported.
    fn end(&mut self, path: &mut Vec<String>, line: usize) {
        let path = std::mem::take(path);
        if path.len() > 1 {
            self.add(path, line);
        }
    }
}

impl<'a> Visit<'a> for Visitor {
    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        for leaf in leaves(item) {
            self.0.push(Reference { path: leaf.path, line: leaf.line, is_re_export: leaf.is_re_export });
        }
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        if path.leading_colon.is_none() {
            let names = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            self.add(names, path.span().start().line);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'a syn::Macro) {
        self.tokens(call.tokens.clone());
        visit::visit_macro(self, call);
    }

    fn visit_item_mod(&mut self, _: &'a syn::ItemMod) {}

    fn visit_visibility(&mut self, _: &'a syn::Visibility) {}

    fn visit_attribute(&mut self, _: &'a syn::Attribute) {}
}

#[cfg(test)]
mod tests {
    use super::references;
    use crate::tidy::workspace::modules::Crates;
    use crate::tidy::workspace::tree::Tree;

    fn paths(text: &str) -> Vec<String> {
        let tree = Tree::of(&[("a/src/lib.rs", text)]);
        let crates = Crates::of(&tree);
        references(&crates.0[0].modules[0]).into_iter().map(|found| found.path.join("::")).collect()
    }

    #[test]
    fn paths_are_found_wherever_they_stand() {
        assert_eq!(paths("use a::{b, c};\n"), ["a::b", "a::c"]);
        assert_eq!(paths("fn f(a: super::A<crate::b::B>) {}\n"), ["super::A", "crate::b::B"]);
        assert_eq!(paths("fn f() { super::g(1).h::<self::I>() }\n"), ["super::g", "self::I"]);
        assert_eq!(paths("fn f() { use a::b; b() }\n"), ["a::b", "b"]);
        assert_eq!(paths("impl<T: a::B> c::D for E<T> {}\n").len(), 4);
    }

    #[test]
    fn macros_are_read_as_tokens() {
        assert_eq!(
            paths("fn f() { log::warn!(\"{}\", super::g(h::I { j: k }), l) }\n"),
            ["super::g", "h::I", "log::warn"]
        );
        assert_eq!(paths("macro_rules! m { ($a:expr) => { $crate::b::c($a) } }\n"), ["crate::b::c", "macro_rules"]);
    }

    #[test]
    fn visibility_and_attributes_are_no_imports() {
        assert_eq!(paths("#[a::b]\npub(in crate::c) fn f() {}\nmod d { use e::F; }\n"), [""; 0]);
    }
}
