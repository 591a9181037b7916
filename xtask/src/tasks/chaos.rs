//! `cargo xtask chaos`: orders through three services while everything around them breaks.

use anyhow::Result;

use super::packages::server_packages;
use crate::phases::run;
use crate::workspace::cargo;

/// Builds the chaos run and starts it with `arguments`. It is built as tests are, with all assertions.
pub(crate) fn chaos(arguments: &[String]) -> Result<()> {
    eprintln!("{}", server_packages()?);
    run(cargo().args(["build", "--package", "saga-chaos"]))?;
    run(cargo().args(["run", "--package", "saga-chaos", "--bin", "saga-chaos", "--"]).args(arguments))
}
