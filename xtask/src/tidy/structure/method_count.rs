//! A component has few methods: what it means to the rest of the crate.

use std::collections::BTreeMap;

use syn::{ImplItem, Visibility};

use crate::tidy::finding::Finding;
use crate::tidy::workspace::impls::inherent_impls;
use crate::tidy::workspace::modules::{Crates, ItemId};

pub(crate) const RULE: &str = "method_count";

/// Where types are components.
const FOLDERS: [&str; 1] = ["saga-core/src/engine/"];

const METHODS_MAX: usize = 15;

/// One finding for each type that has too many functions which others of the crate can call, over all its `impl` blocks.
pub(crate) fn is_small(crates: &Crates<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for one in &crates.0 {
        let mut counts: BTreeMap<ItemId, (usize, usize)> = BTreeMap::new();
        for block in inherent_impls(one) {
            let home = one.modules[block.of.module].file;
            if FOLDERS.iter().any(|folder| home.starts_with(folder)) {
                let visible = block.block.items.iter().filter(|item| is_visible_function(item)).count();
                let (count, line) = counts.entry(block.of).or_insert((0, 1));
                *count += visible;
                if block.file == home && *line == 1 {
                    *line = block.line;
                }
            }
        }
        let too_many = counts.into_iter().filter(|(_, (count, _))| *count > METHODS_MAX);
        findings.extend(too_many.map(|(of, (count, line))| {
            let message = format!(
                "`{}` has {count} methods that the crate can call, and {METHODS_MAX} is the limit: find the components in \
                 it and give each its own fields and methods",
                of.name
            );
            Finding::of_rule(RULE, one.modules[of.module].file, line, of.name, message)
        }));
    }
    findings
}

fn is_visible_function(item: &ImplItem) -> bool {
    matches!(item, ImplItem::Fn(function) if !matches!(function.vis, Visibility::Inherited))
}

#[cfg(test)]
mod tests {
    use super::is_small;
    use crate::tidy::workspace::modules::Crates;
    use crate::tidy::workspace::tree::Tree;

    /// A type with eight visible functions in its file and `more` in another.
    fn found(folder: &str, visibility: &str, more: usize) -> Vec<String> {
        let functions = |count: usize| format!("{visibility} fn f(&self) {{}} ").repeat(count);
        let own = format!("pub struct A<S>(S);\nimpl<S> A<S> {{ {} fn private() {{}} }}\n", functions(8));
        let private = format!("use super::a::A;\nimpl A<u8> {{ {} fn private2() {{}} }}\n", functions(more));
        let (file, other) = (format!("saga-core/src/{folder}/a.rs"), format!("saga-core/src/{folder}/b.rs"));
        let list = format!("saga-core/src/{folder}/mod.rs");
        let root = format!("mod {folder};\n");
        let files = [
            ("saga-core/src/lib.rs", root.as_str()),
            (list.as_str(), "mod a;\nmod b;\n"),
            (file.as_str(), own.as_str()),
            (other.as_str(), private.as_str()),
        ];
        let tree = Tree::of(&files);
        is_small(&Crates::of(&tree)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn too_many_methods_are_found() {
        for visibility in ["pub", "pub(crate)", "pub(super)", "pub(in crate::engine)", "pub(super) async"] {
            let told = found("engine", visibility, 8);
            assert_eq!(told.len(), 1, "{visibility}");
            assert!(told[0].starts_with("error: saga-core/src/engine/a.rs:2: method_count: `A` has 16"), "{}", told[0]);
        }
    }

    #[test]
    fn fifteen_and_private_ones_pass() {
        assert_eq!(found("engine", "pub(crate)", 7), [""; 0]);
        assert_eq!(found("engine", "", 20), [""; 0]);
        assert_eq!(found("saga", "pub", 20), [""; 0]);
    }
}
