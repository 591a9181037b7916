//! The folders of saga-core stand in layers: each imports of those below it only.

use std::collections::BTreeSet;

use crate::tidy::finding::Finding;
use crate::tidy::workspace::modules::{Crates, Import, imports};

pub(crate) const RULE: &str = "upward_import";

const CORE: &str = "saga-core/src/";

/// The folders and files at the top of saga-core, lowest first, and what each may import. `lib.rs` is above all of them.
const MAY_IMPORT: [(&str, &[&str]); 16] = [
    ("batches", &[]),
    ("log", &[]),
    ("env", &[]),
    ("unwind", &["env", "log"]),
    ("key", &[]),
    ("store", &["env", "key"]),
    ("transport", &["key", "store"]),
    ("authorization", &["key", "store"]),
    ("step", &["env", "key", "log", "store"]),
    ("machine", &["key", "step", "store"]),
    ("saga", &["env", "key", "machine", "step", "store", "unwind"]),
    ("service", &["key", "machine", "saga", "step", "store"]),
    ("choreography", &["service"]),
    ("memory", &["env", "key", "log", "store", "transport"]),
    (
        "engine",
        &[
            "authorization",
            "env",
            "key",
            "log",
            "machine",
            // The default transport is in process.
            "memory",
            "saga",
            "service",
            "step",
            "store",
            "transport",
            "unwind",
        ],
    ),
    ("__private", &["batches", "key", "log", "saga", "step", "store"]),
];

/// The folders of the engine in layers, lowest first. A folder imports of itself and of lower layers only. Empty as long as
/// the engine is one folder.
const ENGINE_LAYERS: [&[&str]; 26] = [
    &["lifecycle"],
    &["health"],
    &["context"],
    &["store_calls"],
    &["bulkhead"],
    &["queue"],
    &["membership"],
    &["outcome"],
    &["instance"],
    &["statistics"],
    &["message"],
    &["schedule"],
    &["outbox"],
    &["decide"],
    &["commit"],
    &["start"],
    &["admin"],
    &["execute"],
    &["dead_letter"],
    &["host"],
    &["coordinator"],
    &["choreography"],
    &["inbox"],
    &["claim"],
    &["maintenance"],
    &["runtime"],
];

/// One finding for each item that a file takes from a folder that its own may not know.
pub(crate) fn none_in_the_core(crates: &Crates<'_>) -> Vec<Finding> {
    let Some(core) = crates.0.iter().find(|one| one.folder == CORE) else { return Vec::new() };
    let imports = imports(core);
    let engine: Vec<(&str, Vec<&str>)> = layers(&ENGINE_LAYERS);
    let mut findings = check(imports, CORE, &MAY_IMPORT.map(|(folder, below)| (folder, below.to_vec())));
    if !engine.is_empty() {
        findings.extend(check(imports, &format!("{CORE}engine/"), &engine));
    }
    findings
}

/// Layers as what each folder may import: all of the layers below its own.
fn layers<'a>(layers: &[&[&'a str]]) -> Vec<(&'a str, Vec<&'a str>)> {
    let mut table = Vec::new();
    for (at, layer) in layers.iter().enumerate() {
        table.extend(layer.iter().map(|folder| (*folder, layers[..at].concat())));
    }
    table
}

fn check(imports: &[Import<'_>], parent: &str, table: &[(&str, Vec<&str>)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut told = BTreeSet::new();
    for import in imports {
        let (Some(from), Some(to)) = (folder(import.from, parent), folder(import.to, parent)) else { continue };
        let item = format!("{to}::{}", import.item);
        if from == to || !told.insert((import.from, item.clone())) {
            continue;
        }
        let message = match (table.iter().find(|(name, _)| *name == from), table.iter().any(|(name, _)| *name == to)) {
            (Some((_, below)), true) if below.contains(&to) => continue,
            (Some((_, below)), true) => format!(
                "`{from}` imports `{item}`, and may import {}: move what both need below both",
                if below.is_empty() { "no other folder".to_owned() } else { below.join(", ") }
            ),
            (known, _) => {
                let new = if known.is_none() { from } else { to };
                format!(
                    "`{parent}{new}` has no place in the table of xtask/src/tidy/structure/upward_import.rs; give it one"
                )
            }
        };
        findings.push(Finding::of_rule(RULE, import.from, import.line, item, message));
    }
    findings
}

/// The folder or file below `parent` that a file is in; none for what only holds the others together.
fn folder<'a>(file: &'a str, parent: &str) -> Option<&'a str> {
    let first = file.strip_prefix(parent)?.split('/').next()?;
    Some(first.strip_suffix(".rs").unwrap_or(first)).filter(|name| !matches!(*name, "lib" | "mod"))
}

#[cfg(test)]
mod tests {
    use super::{CORE, MAY_IMPORT, check, layers, none_in_the_core};
    use crate::tidy::workspace::modules::{Crates, imports};
    use crate::tidy::workspace::tree::Tree;

    fn core(step: &str, engine: &str) -> Vec<String> {
        let tree = Tree::of(&[
            ("saga-core/src/lib.rs", "mod step;\nmod engine;\nmod key;\npub use engine::Runtime;\n"),
            ("saga-core/src/step/mod.rs", "mod args;\npub use self::args::Args;\n"),
            ("saga-core/src/step/args.rs", step),
            ("saga-core/src/engine/mod.rs", "mod runtime;\npub use self::runtime::Runtime;\n"),
            ("saga-core/src/engine/runtime.rs", engine),
            ("saga-core/src/key.rs", "pub struct Key;\n"),
        ]);
        none_in_the_core(&Crates::of(&tree)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_upward_import_is_found() {
        for text in [
            "use crate::engine::Runtime;\npub struct Args;\n",
            "pub struct Args(crate::Runtime);\n",
            "pub use super::super::engine::Runtime as Args;\n",
        ] {
            let told = core(text, "pub struct Runtime;\n");
            let begin =
                "error: saga-core/src/step/args.rs:1: upward_import: `step` imports `engine::Runtime`, and may import ";
            assert!(told.iter().any(|finding| finding.starts_with(begin)), "{text}: {told:?}");
        }
    }

    #[test]
    fn downward_imports_pass() {
        let args =
            "use crate::key::Key;\npub struct Args(Key);\n#[cfg(test)]\nmod tests { use crate::engine::Runtime; }\n";
        assert_eq!(core(args, "use crate::step::Args;\npub struct Runtime(Args);\n"), [""; 0]);
    }

    #[test]
    fn a_folder_without_a_place_is_found() {
        let tree = Tree::of(&[
            ("saga-core/src/lib.rs", "mod key;\nmod brand_new;\n"),
            ("saga-core/src/key.rs", "pub struct Key;\n"),
            ("saga-core/src/brand_new.rs", "use crate::key::Key;\n"),
        ]);
        let told = none_in_the_core(&Crates::of(&tree));
        assert_eq!(told.len(), 1);
        assert!(
            told[0].message.starts_with("`saga-core/src/brand_new` has no place in the table"),
            "{}",
            told[0].message
        );
    }

    #[test]
    fn layers_import_lower_layers_only() {
        let tree = Tree::of(&[
            ("a/src/lib.rs", "mod low;\nmod left;\nmod right;\nmod high;\n"),
            ("a/src/low.rs", "pub struct Low;\n"),
            ("a/src/left.rs", "use crate::low::Low;\npub struct Left;\n"),
            ("a/src/right.rs", "use crate::left::Left;\n"),
            ("a/src/high.rs", "use crate::left::Left;\nuse crate::low::Low;\n"),
        ]);
        let crates = Crates::of(&tree);
        let table = layers(&[&["low"], &["left", "right"], &["high"]]);
        let told = check(imports(&crates.0[0]), "a/src/", &table);
        let places: Vec<(&str, usize)> = told.iter().map(|finding| (finding.path.as_str(), finding.line)).collect();
        assert_eq!(places, [("a/src/right.rs", 1)]);
    }

    #[test]
    fn the_table_stands_in_layers_itself() {
        for (at, (folder, below)) in MAY_IMPORT.iter().enumerate() {
            for name in *below {
                let is_lower = MAY_IMPORT[..at].iter().any(|(lower, _)| lower == name);
                assert!(is_lower, "{CORE}{folder} may import {name}, which is not above it in the table");
            }
        }
    }
}
