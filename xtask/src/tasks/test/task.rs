//! The phases of the task.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail};
use saga_servers::{Addresses, Services, without_password};

use super::cargo_test::{built, test_command};
use super::lanes::Job;
use super::programs::TestProgram;
use super::report::run_jobs;
use super::simulation::{self, Simulation};
use crate::interrupt::{run_in_group, run_interruptibly};
use crate::phases::{Phases, now, shown};
use crate::tasks::packages::server_packages;
use crate::tasks::prerequisites::{c_compiler, openssl};

/// Installs what is missing, starts the servers, runs the tests of the workspace, then the simulation.
///
/// With a `filter` only the tests that it selects run, and that is said.
pub(crate) fn test(filter: &[String]) -> Result<()> {
    let mut phases = Phases::of("test");
    let given = Addresses::from_environment()?;
    phases.run("prerequisites", || Ok(format!("{}; {}; {}", c_compiler()?, openssl()?, server_packages()?)))?;
    run_interruptibly(run_all(&mut phases, filter, given))
}

/// What can be interrupted at any moment: the servers and the running commands end when this is dropped.
async fn run_all(phases: &mut Phases, filter: &[String], given: Addresses) -> Result<()> {
    let (mut services, mut programs) = (None, Vec::new());
    phases
        .wait("build and start servers", async {
            // A compiler and a starting server hinder each other little, so neither waits for the other.
            let (built, (note, started)) = tokio::try_join!(build(filter), start(given))?;
            services = Some(started);
            programs = built;
            Ok(note)
        })
        .await?;
    let services = services.context("the servers did not start")?;
    if filter.is_empty() {
        phases.wait("tests", all_tests(&programs, services.addresses())).await?;
    } else {
        phases.wait("tests", selected_tests(filter, services.addresses())).await?;
    }
    phases.run("stop servers", || {
        drop(services);
        Ok(String::new())
    })?;
    if !filter.is_empty() {
        return Ok(());
    }
    let mut simulation = None;
    phases
        .wait("build the simulation", async {
            simulation = Some(Simulation::build().await?);
            Ok(String::new())
        })
        .await?;
    let simulation = simulation.context("the simulation was not built")?;
    phases.wait("simulation", simulation.run()).await
}

/// Builds what `filter` selects, or everything, and lists the programs with tests.
async fn build(filter: &[String]) -> Result<Vec<TestProgram>> {
    TestProgram::all(&built(&[], filter).await?)
}

/// Starts the servers whose addresses are not given, and says how long that took.
async fn start(given: Addresses) -> Result<(String, Services)> {
    let given_count = given.variables().len();
    let begun = now();
    let services = Services::start(given).await?;
    let mut note = format!("servers ready after {:.1} s", begun.elapsed().as_secs_f64());
    if given_count > 0 {
        let _ = write!(note, ", {given_count} addresses taken from the environment");
    }
    println!("{note}");
    for (name, url) in services.addresses().variables() {
        println!("  {name:<28} {}", without_password(url));
    }
    Ok((note, services))
}

/// All tests: of units, of crates, of the conformance suites (tests without harness) and of the documentation.
async fn all_tests(programs: &[TestProgram], addresses: &Addresses) -> Result<String> {
    if programs.is_empty() {
        bail!("there is not one program with tests");
    }
    let documentation = test_command(&["--doc"], &[]);
    // Those of the simulation are run when they are optimised.
    let programs = programs
        .iter()
        .filter(|program| program.name() != simulation::TESTS)
        .map(|program| Job { title: program.title(), command: program.command() });
    let documentation = Job { title: shown(&documentation), command: documentation };
    // First, since cargo tests one crate's documentation after the other: at the end the other lanes would be idle.
    run_jobs([documentation].into_iter().chain(programs).collect(), addresses).await
}

/// The tests that `filter` selects, one after the other by cargo itself, so that a person sees them come.
async fn selected_tests(filter: &[String], addresses: &Addresses) -> Result<String> {
    let mut command = test_command(&[], filter);
    command.envs(addresses.variables());
    run_in_group(command).await?;
    Ok(format!("only what `{}` selects, and no simulation", filter.join(" ")))
}
