//! `cargo xtask api`: the public API of the library crates, as files that are reviewed.

use std::fs;

use anyhow::{Context as _, Result, bail};
use clap::Args;

use crate::api::{Documented, count_outside, difference, document, listing};
use crate::workspace::root;

/// The library crates, in the order of their layers. Those of a group are documented together; the later ones turn on features of
/// the earlier ones.
const CRATES: [&[&str]; 3] = [
    &[
        "saga-core",
        "saga-macros",
        "saga-sqlite",
        "saga-postgres",
        "saga-sql",
        "saga-amqp",
        "saga-kafka",
        "saga-sqs",
        "saga-http",
        "saga-redis",
        "saga-cli",
    ],
    &["saga-reservations"],
    &["saga-testkit"],
];

const FOLDER: &str = "docs/api";

/// The crate whose size has an aim, the doors for authors of backends, which are not counted, and the aim.
const COUNTED: (&str, [&str; 2], usize) = ("saga-core", ["saga_core::store::", "saga_core::transport::"], 450);

/// What to do with the files.
#[derive(Debug, Default, Args)]
pub(crate) struct Api {
    /// Compares, and writes nothing: a difference fails.
    #[arg(long)]
    check: bool,
}

impl Api {
    /// What `cargo xtask check` does.
    pub(crate) fn checked() -> Self {
        Self { check: true }
    }
}

/// Lists the public items of each library crate in docs/api, or compares with what is listed there. Returns what it counted.
pub(crate) fn api(options: &Api) -> Result<String> {
    let mut changed = Vec::new();
    let mut note = String::new();
    let mut libraries = Vec::new();
    for group in CRATES {
        libraries.extend(group.iter().zip(document(group)?));
    }
    for (&name, documented) in libraries {
        let text = listing(&documented);
        println!("{name}: {} lines", text.lines().count());
        if name == COUNTED.0 {
            note = counts(&documented);
            println!("{note}");
        }
        let path = format!("{FOLDER}/{name}.txt");
        let file = root().join(&path);
        if !options.check {
            fs::create_dir_all(root().join(FOLDER)).with_context(|| format!("cannot create {FOLDER}"))?;
            fs::write(&file, text).with_context(|| format!("cannot write {path}"))?;
            continue;
        }
        let listed = fs::read_to_string(&file).with_context(|| format!("cannot read {path}; run `cargo xtask api`"))?;
        if listed != text {
            println!("{path} differs:");
            for line in difference(&listed, &text) {
                println!("{line}");
            }
            changed.push(path);
        }
    }
    if !changed.is_empty() {
        bail!("the public API changed: run `cargo xtask api`, and commit {}", changed.join(", "));
    }
    Ok(note)
}

/// The counts of the crate that has an aim, in words.
fn counts(documented: &Documented) -> String {
    let (name, doors, aim) = COUNTED;
    let items = documented.api.items().map(|item| (item.id().0, item.to_string()));
    let counts = count_outside(items, &documented.json, &doors.map(str::to_owned));
    let total: usize = counts.values().sum();
    let kinds: Vec<String> = counts.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    format!("{name} outside of store and transport: {total} public items ({}); the aim is {aim}", kinds.join(", "))
}
