//! What is asked for.

use anyhow::Result;
use clap::Args;

use super::beside::run_both;
use crate::phases::run;
use crate::workspace::cargo;

/// What is measured, and beside what.
#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// Runs the benchmarks of this revision in alternation with those of the working tree, and tells the ratios.
    #[arg(long, value_name = "REVISION")]
    beside: Option<String>,
    /// How often each of the two runs.
    #[arg(long, default_value_t = 3, requires = "beside", value_parser = clap::value_parser!(u32).range(1..))]
    times: u32,
    /// Passed to the benchmarks.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Builds the benchmarks in release and runs them.
pub(crate) fn bench(bench: &Bench) -> Result<()> {
    let Bench { beside, times, arguments } = bench;
    match beside {
        Some(revision) => run_both(revision, *times, arguments),
        None => run(cargo().args(["run", "--release", "--package", "saga-bench", "--"]).args(arguments)),
    }
}
