//! The simulation and its tests.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::lanes::Job;
use super::programs::TestProgram;
use crate::phases::shown;

/// The program with the tests of the simulation.
const TESTS: &str = "simulation";

/// How many schedules a test run simulates. They are the same in every run, so a failure is never bad luck.
const SIMULATED_SEEDS: &str = "5000";

/// What is run. Its time is virtual, so it may take what processor time the other tests leave.
#[derive(Debug)]
pub(super) struct Simulation {
    tests: TestProgram,
    schedules: PathBuf,
}

impl Simulation {
    /// Takes the tests of the simulation out of `programs`, and the program that runs schedules from what cargo built.
    pub(super) fn take(programs: &mut Vec<TestProgram>, messages: &str) -> Result<Self> {
        let place = programs.iter().position(|program| program.name() == TESTS);
        let tests = programs.remove(place.context("cargo built no tests of the simulation")?);
        let schedules = messages.lines().find_map(executable_of_sim).context("cargo built no `sim`")?;
        Ok(Self { tests, schedules })
    }

    /// The tests, then the schedules.
    pub(super) fn into_jobs(self) -> Vec<Job> {
        let mut schedules = Command::new(&self.schedules);
        schedules.args(["--seed-from", "0", "--seeds", SIMULATED_SEEDS]);
        let schedules = Job { title: shown(&schedules), command: schedules };
        vec![Job { title: self.tests.title(), command: self.tests.command() }, schedules]
    }
}

fn executable_of_sim(message: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    let is_it = message["target"]["name"] == "sim" && message["target"]["kind"][0] == "bin";
    message["executable"].as_str().filter(|_| is_it).map(PathBuf::from)
}
