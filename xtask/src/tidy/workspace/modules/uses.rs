//! `use` declarations, one name each.

use syn::spanned::Spanned as _;
use syn::{ItemUse, UseTree, Visibility};

/// One name that a `use` brings in, or one glob.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Leaf {
    pub(crate) path: Vec<String>,
    /// The name here: none for a glob, and none for `as _`.
    pub(crate) name: Option<String>,
    pub(crate) is_glob: bool,
    /// Whether other modules can take the name from here.
    pub(crate) is_re_export: bool,
    pub(crate) line: usize,
}

/// The names of `use a::{b, c::{self, D as E}, f::*}`. What begins with `::` is of another crate.
pub(crate) fn leaves(item: &ItemUse) -> Vec<Leaf> {
    let mut found = Vec::new();
    if item.leading_colon.is_none() {
        let is_re_export = !matches!(item.vis, Visibility::Inherited);
        collect(&item.tree, &mut Vec::new(), is_re_export, &mut found);
    }
    found
}

fn collect(tree: &UseTree, prefix: &mut Vec<String>, is_re_export: bool, found: &mut Vec<Leaf>) {
    let line = tree.span().start().line;
    let mut leaf = |path: Vec<String>, name: Option<String>, is_glob: bool| {
        found.push(Leaf { path, name, is_glob, is_re_export, line });
    };
    match tree {
        UseTree::Path(path) => {
            prefix.push(path.ident.to_string());
            collect(&path.tree, prefix, is_re_export, found);
            prefix.pop();
        }
        UseTree::Group(group) => {
            group.items.iter().for_each(|tree| collect(tree, prefix, is_re_export, found));
        }
        UseTree::Glob(_) => leaf(prefix.clone(), None, true),
        UseTree::Name(name) => {
            let path = extended(prefix, &name.ident.to_string());
            let name = path.last().cloned();
            leaf(path, name, false);
        }
        UseTree::Rename(rename) => {
            let name = Some(rename.rename.to_string()).filter(|name| name != "_");
            leaf(extended(prefix, &rename.ident.to_string()), name, false);
        }
    }
}

/// The path with one more name; `a::{self}` is `a`.
fn extended(prefix: &[String], name: &str) -> Vec<String> {
    let mut path = prefix.to_vec();
    if name != "self" || prefix.is_empty() {
        path.push(name.to_owned());
    }
    path
}

#[cfg(test)]
mod tests {
    use super::leaves;

    #[test]
    fn a_group_is_one_leaf_for_each_name() {
        let item = syn::parse_str("pub(crate) use a::{\n  b,\n  c::{self, D as E, F as _},\n  g::*,\n};")
            .expect("the snippet is Rust");
        let found: Vec<(String, Option<String>, usize)> =
            leaves(&item).into_iter().map(|leaf| (leaf.path.join("::"), leaf.name, leaf.line)).collect();
        let named = |path: &str, name: &str, line| (path.to_owned(), Some(name.to_owned()), line);
        let nameless = |path: &str, line| (path.to_owned(), None, line);
        assert_eq!(
            found,
            [
                named("a::b", "b", 2),
                named("a::c", "c", 3),
                named("a::c::D", "E", 3),
                nameless("a::c::F", 3),
                nameless("a::g", 4)
            ]
        );
        assert!(leaves(&item).iter().all(|leaf| leaf.is_re_export));
    }

    #[test]
    fn other_crates_have_no_leaves() {
        assert_eq!(leaves(&syn::parse_str("use ::serde::Serialize;").expect("the snippet is Rust")), []);
    }
}
