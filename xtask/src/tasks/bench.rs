//! `cargo xtask bench`: the benchmarks, each beside its floors.

use anyhow::Result;

use crate::phases::run;
use crate::workspace::cargo;

/// Builds the benchmarks in release and runs them with `arguments`.
pub(crate) fn bench(arguments: &[String]) -> Result<()> {
    run(cargo().args(["run", "--release", "--package", "saga-bench", "--"]).args(arguments))
}
