//! The simulation and its tests, optimised and with the checks of a debug build.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};
use saga_servers::Addresses;
use serde_json::Value;

use super::cargo_test::built;
use super::lanes::Job;
use super::programs::TestProgram;
use super::report::run_jobs;
use crate::interrupt::run_in_group;

/// The program with the tests of the simulation.
pub(super) const TESTS: &str = "simulation";

/// What a schedule spends its time in. Everything else stays as the other tests have it, so little is built anew; a release builds
/// each dependency again.
const OPTIMISED: [&str; 4] = [
    "--config",
    "profile.dev.package.saga-core.opt-level=1",
    "--config",
    "profile.dev.package.saga-testkit.opt-level=1",
];

/// How many schedules a test run simulates. They are the same in every run, so a failure is never bad luck.
const SIMULATED_SEEDS: &str = "5000";

/// What is run.
#[derive(Debug)]
pub(super) struct Simulation {
    tests: TestProgram,
    schedules: PathBuf,
}

impl Simulation {
    /// Builds the tests of the simulation, and the program that runs schedules.
    pub(super) async fn build() -> Result<Self> {
        let messages = built(&[&["--test", TESTS][..], &OPTIMISED[..]].concat(), &[]).await?;
        let tests = TestProgram::all(&messages)?.pop().context("cargo built no tests of the simulation")?;
        let schedules = messages.lines().find_map(executable_of_sim).context("cargo built no `sim`")?;
        Ok(Self { tests, schedules })
    }

    /// Runs the tests, then the schedules.
    pub(super) async fn run(&self) -> Result<String> {
        let tests = Job { title: self.tests.title(), command: self.tests.command() };
        let note = run_jobs(vec![tests], &Addresses::default()).await?;
        let mut schedules = Command::new(&self.schedules);
        schedules.args(["--seed-from", "0", "--seeds", SIMULATED_SEEDS]);
        run_in_group(schedules).await?;
        Ok(format!("{note}; {SIMULATED_SEEDS} schedules"))
    }
}

fn executable_of_sim(message: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    let is_it = message["target"]["name"] == "sim" && message["target"]["kind"][0] == "bin";
    message["executable"].as_str().filter(|_| is_it).map(PathBuf::from)
}
