//! The documentation of a crate as JSON.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use public_api::PublicApi;
use serde_json::Value;

use crate::phases::run;
use crate::workspace::{cargo, root};

const RUSTDOC: &str = "xtask/src/api/rustdoc.sh";

/// What rustdoc knows of a crate: its items as `public-api` renders them, and what each of them is.
#[derive(Debug)]
pub(crate) struct Documented {
    pub(crate) api: PublicApi,
    /// The JSON itself.
    pub(crate) json: Value,
}

/// Documents the packages that these options of cargo select, warnings denied, and returns what rustdoc knows of the libraries `names`.
pub(crate) fn document(selection: &[&str], names: &[&str]) -> Result<Vec<Documented>> {
    let mut command = cargo();
    command.args(["doc", "--quiet", "--no-deps"]).args(selection);
    command.env("RUSTDOCFLAGS", "-Z unstable-options --output-format json -D warnings");
    run(command.env("RUSTDOC", root().join(RUSTDOC)))?;

    let folder = target_folder()?.join("doc");
    names.iter().map(|name| read(&folder.join(format!("{}.json", name.replace('-', "_"))))).collect()
}

fn read(file: &Path) -> Result<Documented> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let json = serde_json::from_str(&text).with_context(|| format!("{} is no JSON", file.display()))?;
    let api = public_api::Builder::from_rustdoc_json(file)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build();
    let unread = "cannot read the JSON of rustdoc; its format changes with the toolchain, and so must the version of `public-api`";
    Ok(Documented { api: api.context(unread)?, json })
}

/// Where cargo builds.
fn target_folder() -> Result<PathBuf> {
    let output = cargo()
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .output()
        .context("cannot run cargo metadata")?;
    let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo metadata gave no JSON")?;
    let folder = metadata["target_directory"].as_str().context("cargo metadata names no target folder")?;
    Ok(PathBuf::from(folder))
}
