//! `cargo xtask tidy --graph`: what the files of a folder import of each other, in layers.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Result, bail};

use super::workspace::modules::{Crates, Edge, Graph, cuts, imports};
use super::workspace::tree::Tree;

/// How many items of an import are shown.
const ITEMS_SHOWN: usize = 4;

/// The import graph of the files below `folder`, lowest layer first. With `by_folder` each folder in it is one node.
pub(crate) fn import_graph(root: &Path, folder: &str, by_folder: bool) -> Result<String> {
    let tree = Tree::read(root)?;
    let parent = format!("{}/", folder.trim_end_matches('/'));
    show(&tree, &parent, by_folder)
}

fn show(tree: &Tree, parent: &str, by_folder: bool) -> Result<String> {
    let crates = Crates::of(tree);
    let Some(one) = crates.around(parent) else { bail!("{parent} is no folder of a crate's `src`") };
    let name = |file: &str| {
        let inside = file.strip_prefix(parent)?;
        let first = inside.split('/').next()?;
        Some(if by_folder { first.trim_end_matches(".rs") } else { inside }.to_owned())
    };
    let mut graph = Graph::of(imports(one), name);
    let defining = one.modules.iter().filter(|module| module.defines);
    defining.filter_map(|module| name(module.file)).for_each(|file| graph.add(file));
    Ok(text(parent, &graph))
}

fn text(parent: &str, graph: &Graph) -> String {
    let layers = graph.layers();
    let parts = || layers.iter().flatten();
    let nodes: usize = parts().map(BTreeSet::len).sum();
    let circles: Vec<String> =
        parts().filter(|part| part.len() > 1).map(|part| format!("one of {}", part.len())).collect();
    let circles = if circles.is_empty() { "none".to_owned() } else { circles.join(", ") };
    let mut text = format!("{parent}: {nodes} nodes in {} layers; circles: {circles}\n", layers.len());
    for (number, layer) in layers.iter().enumerate() {
        let _ = writeln!(text, "\nlayer {}", number + 1);
        for part in layer {
            if part.len() > 1 {
                let _ = writeln!(text, "  circle of {}; `*` marks what is imported inside it", part.len());
            }
            let indent = if part.len() > 1 { "    " } else { "  " };
            for (from, to, edges) in cuts(graph, part) {
                let _ = writeln!(text, "    to cut: {from} -> {to}: {}", items(edges));
            }
            for node in part {
                let _ = writeln!(text, "{indent}{node}");
                for (to, edges) in graph.imports_of(node) {
                    let mark = if part.contains(to) { "*" } else { " " };
                    let _ = writeln!(text, "{indent}  {mark} {to}: {}", items(edges));
                }
            }
        }
    }
    text
}

fn items(edges: &[Edge]) -> String {
    let mut names: Vec<&str> = edges.iter().take(ITEMS_SHOWN).map(|edge| edge.item.as_str()).collect();
    let more = format!("and {} more", edges.len().saturating_sub(ITEMS_SHOWN));
    if edges.len() > ITEMS_SHOWN {
        names.push(&more);
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::show;
    use crate::tidy::workspace::tree::Tree;

    fn tree() -> Tree {
        Tree::of(&[
            ("a/src/lib.rs", "mod b;\n"),
            ("a/src/b/mod.rs", "mod c;\nmod d;\nmod low;\nmod e;\n"),
            ("a/src/b/c.rs", "use super::d::{D, d};\nuse super::low::Low;\npub struct C;\n"),
            ("a/src/b/d.rs", "use super::c::C;\npub struct D;\npub fn d() {}\n"),
            ("a/src/b/low.rs", "pub struct Low;\n"),
            ("a/src/b/e/mod.rs", "mod f;\n"),
            ("a/src/b/e/f.rs", "use super::super::low::Low;\n"),
        ])
    }

    #[test]
    fn layers_and_circles_are_shown() {
        let text = show(&tree(), "a/src/b/", false).expect("the folder is there");
        let expected = "a/src/b/: 4 nodes in 2 layers; circles: one of 2\n\nlayer 1\n  low.rs\n\nlayer 2\n  circle of 2; `*` \
                        marks what is imported inside it\n    to cut: d.rs -> c.rs: C\n    c.rs\n      * d.rs: D, d\n        low.rs: Low\n    d.rs\n      * \
                        c.rs: C\n  e/f.rs\n      low.rs: Low\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn folders_can_be_nodes() {
        let text = show(&tree(), "a/src/b/", true).expect("the folder is there");
        assert!(text.contains("\n  e\n      low: Low\n"), "{text}");
        assert!(show(&tree(), "a/tests/", true).is_err());
    }
}
