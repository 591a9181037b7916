//! `cargo xtask api`: the public API of the library crates, as files that are reviewed.

use std::fs;

use anyhow::{Context as _, Result, bail};
use clap::Args;

use crate::api::{Documented, count_outside, difference, document, listing};
use crate::workspace::{WITH_SERVERS, root};

/// The core is documented as users have it: other crates turn on a feature of it that is none of theirs.
const CORE: &str = "saga-core";

/// The other library crates, in the order of their layers.
const CRATES: [&str; 12] = [
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
    "saga-reservations",
    "saga-testkit",
];

const FOLDER: &str = "docs/api";

/// The doors for authors of backends, which are not counted in the core.
const DOORS: [&str; 2] = ["saga_core::store::", "saga_core::transport::"];
/// How many items the core should have at most.
const CORE_ITEMS_AIM: usize = 450;

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

/// Documents the workspace, and lists the public items of each library crate in docs/api, or compares with what is listed there.
/// Returns what it counted.
pub(crate) fn api(options: &Api) -> Result<String> {
    let mut changed = Vec::new();
    let mut note = String::new();
    let core = document(&["--package", CORE], &[CORE])?;
    // With the features of all checks, so that what clippy checked is not checked again.
    let others = document(&["--workspace", "--exclude", CORE, "--features", WITH_SERVERS], &CRATES)?;
    for (name, documented) in [CORE].into_iter().chain(CRATES).zip(core.into_iter().chain(others)) {
        let text = listing(&documented);
        println!("{name}: {} lines", text.lines().count());
        if name == CORE {
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
    let items = documented.api.items().map(|item| (item.id().0, item.to_string()));
    let counts = count_outside(items, &documented.json, &DOORS.map(str::to_owned));
    let total: usize = counts.values().sum();
    let kinds: Vec<String> = counts.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let kinds = kinds.join(", ");
    format!("{CORE} outside of store and transport: {total} public items ({kinds}); the aim is {CORE_ITEMS_AIM}")
}
