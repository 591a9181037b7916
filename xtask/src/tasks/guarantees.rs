//! `cargo xtask guarantees`: writes the list of the guarantees and the tests that name them.

use std::fs;

use anyhow::{Context as _, Result};

use crate::tidy::guarantees_page;
use crate::workspace::root;

/// Writes `docs/guarantees.md`.
pub(crate) fn guarantees() -> Result<()> {
    let (path, text) = guarantees_page(&root())?;
    fs::write(root().join(path), text).with_context(|| format!("cannot write {path}"))?;
    println!("wrote {path}");
    Ok(())
}
