//! The simulation and its tests, optimised and with the checks of a debug build.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::cargo_test::{build_command, built};
use super::compiler::Compiler;
use super::lanes::{Job, giving_way};
use super::programs::TestProgram;
use crate::phases::shown;

/// The program with the tests of the simulation.
pub(super) const TESTS: &str = "simulation";

/// What a schedule spends its time in. Everything else stays as the other tests have it, so little is built anew; a release builds
/// each dependency again. Were these two always so, all that is built on them would take twice as long to build.
const OPTIMISED: [&str; 4] = [
    "--config",
    "profile.dev.package.saga-core.opt-level=1",
    "--config",
    "profile.dev.package.saga-testkit.opt-level=1",
];

/// How many schedules a test run simulates. They are the same in every run, so a failure is never bad luck.
const SIMULATED_SEEDS: &str = "5000";

/// What is run. Its time is virtual, so it may take what processor time the other tests leave.
#[derive(Debug)]
pub(super) struct Simulation {
    tests: TestProgram,
    schedules: PathBuf,
}

impl Simulation {
    /// Builds the tests of the simulation, and the program that runs schedules, in the background of what else runs.
    pub(super) async fn build(compiler: &Compiler) -> Result<Self> {
        let command = build_command(compiler, &[&["--test", TESTS][..], &OPTIMISED[..]].concat(), &[]);
        let messages = built(giving_way(&command)).await?;
        let tests = TestProgram::all(&messages)?.pop().context("cargo built no tests of the simulation")?;
        let schedules = messages.lines().find_map(executable_of_sim).context("cargo built no `sim`")?;
        Ok(Self { tests, schedules })
    }

    /// The tests, then the schedules.
    pub(super) fn into_jobs(self) -> Vec<Job> {
        let mut schedules = Command::new(&self.schedules);
        schedules.args(["--seed-from", "0", "--seeds", SIMULATED_SEEDS]);
        let schedules = Job::new(shown(&schedules), schedules);
        vec![Job::new(self.tests.title(), self.tests.command()), schedules]
    }
}

fn executable_of_sim(message: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    let is_it = message["target"]["name"] == "sim" && message["target"]["kind"][0] == "bin";
    message["executable"].as_str().filter(|_| is_it).map(PathBuf::from)
}
