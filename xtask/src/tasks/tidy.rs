//! `cargo xtask tidy`: the rules of the house that a program can check.

use anyhow::{Result, bail};

use crate::tidy::{Level, check_workspace};
use crate::workspace::root;

/// Prints every finding, and fails if one of them is an error.
pub(crate) fn tidy() -> Result<()> {
    let report = check_workspace(&root())?;
    for finding in &report.findings {
        println!("{finding}");
    }
    for note in &report.notes {
        println!("tidy: {note}");
    }
    let errors = report.findings.iter().filter(|finding| finding.level == Level::Error).count();
    if errors > 0 {
        bail!("tidy found {errors} errors");
    }
    println!("tidy: {} files, {} warnings", report.file_count, report.findings.len());
    Ok(())
}
