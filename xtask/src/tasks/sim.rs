//! `cargo xtask sim`: seeded schedules of the whole engine, with faults.

use anyhow::Result;

use crate::phases::run;
use crate::workspace::cargo;

/// Builds the simulation in release and runs it with `arguments`.
pub(crate) fn sim(arguments: &[String]) -> Result<()> {
    let options = ["run", "--release", "--package", "saga-testkit", "--features", "mimalloc", "--bin", "sim", "--"];
    run(cargo().args(options).args(arguments))
}
