//! The core stays small: how many crates it builds on is counted.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::tidy::finding::Finding;

const CRATE: &str = "saga-core";

const CRATES_MAX: usize = 34;

/// The crates beneath saga-core that it is built with: its dependencies and theirs, those of build scripts and macros included.
pub(crate) fn beneath_the_core(cargo: &mut Command) -> Result<BTreeSet<String>> {
    cargo.args(["tree", "--package", CRATE, "--edges", "normal,build", "--prefix", "none", "--quiet"]);
    let output = cargo.output().context("cannot run cargo tree")?;
    if !output.status.success() {
        bail!("cargo tree ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(crates(&String::from_utf8_lossy(&output.stdout)))
}

/// More crates than the limit are a finding.
pub(crate) fn limit(beneath: &BTreeSet<String>) -> Vec<Finding> {
    if beneath.len() <= CRATES_MAX {
        return Vec::new();
    }
    let names = beneath.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    let message = format!("{} crates beneath {CRATE}, and {CRATES_MAX} is the limit: {names}", beneath.len());
    vec![Finding::error("saga-core/Cargo.toml", 1, message)]
}

/// The lines of `cargo tree` as `name version`, each once, without the crate itself.
fn crates(tree: &str) -> BTreeSet<String> {
    let named = tree.lines().map(|line| line.split_whitespace().take(2).collect::<Vec<_>>().join(" "));
    named.filter(|name| !name.is_empty() && !name.starts_with(&format!("{CRATE} "))).collect()
}

#[cfg(test)]
mod tests {
    use super::{crates, limit};

    #[test]
    fn a_crate_counts_once() {
        let tree =
            "saga-core v0.1.0 (/w/saga-core)\nserde v1.0.1\nserde_derive v1.0.1 (proc-macro)\nserde v1.0.1 (*)\n\n";
        let names: Vec<String> = crates(tree).into_iter().collect();
        assert_eq!(names, ["serde v1.0.1", "serde_derive v1.0.1"]);
    }

    #[test]
    fn too_many_crates_are_found() {
        let beneath = |count: usize| (0..count).map(|number| format!("c{number} v1.0.0")).collect();
        assert_eq!(limit(&beneath(34)), []);
        assert_eq!(limit(&beneath(35)).len(), 1);
    }
}
