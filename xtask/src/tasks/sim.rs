//! `cargo xtask sim`: seeded schedules of the whole engine, with faults.

use std::process::Command;

use anyhow::Result;

use crate::phases::run;
use crate::workspace::cargo;

/// Builds the simulation in release and runs it with `arguments`.
pub(crate) fn sim(arguments: &[String]) -> Result<()> {
    run(sim_command("run").arg("--").args(arguments))
}

/// `cargo build` or `cargo run` of the simulation.
pub(crate) fn sim_command(verb: &str) -> Command {
    let mut command = cargo();
    command.args([verb, "--release", "--package", "saga-testkit", "--features", "mimalloc", "--bin", "sim"]);
    command
}
