//! The phases of the task.

use std::fmt::Write as _;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Args;
use saga_servers::{Addresses, Services, without_password};

use super::cargo_test::{build_command, built, run_tests, test_command};
use super::compiler::Compiler;
use super::lanes::Job;
use super::programs::TestProgram;
use super::report::run_jobs;
use super::simulation::{self, Simulation};
use crate::interrupt::run_interruptibly;
use crate::phases::{Phases, now, shown};
use crate::tasks::packages::server_packages;
use crate::tasks::prerequisites::{c_compiler, components, openssl};

/// How long before the background the tests of the documentation begin.
const HEAD_START: Duration = Duration::from_secs(20);

/// What is run.
#[derive(Debug, Args)]
pub(crate) struct Test {
    /// Runs `cargo xtask check` as well, in the processor time that the tests leave; clippy then compiles the tests.
    #[arg(long, conflicts_with = "filter")]
    check: bool,
    /// Passed to `cargo test --workspace`, for example a test's name; the simulation is then left out.
    #[arg(last = true)]
    filter: Vec<String>,
}

/// Installs what is missing, starts the servers, runs the tests of the workspace and the simulation.
///
/// With a filter only the tests that it selects run, and that is said.
pub(crate) fn test(options: &Test) -> Result<()> {
    let mut phases = Phases::of("test");
    let given = Addresses::from_environment()?;
    let mut compiler = Compiler::Rustc;
    phases.run("prerequisites", || {
        let mut notes = vec![c_compiler()?, openssl()?, server_packages()?];
        if options.check {
            notes.push(components()?);
            compiler = Compiler::clippy()?;
        }
        Ok(notes.join("; "))
    })?;
    run_interruptibly(run_all(&mut phases, options, &compiler, given))
}

/// What can be interrupted at any moment: the servers and the running commands end when this is dropped.
async fn run_all(phases: &mut Phases, options: &Test, compiler: &Compiler, given: Addresses) -> Result<()> {
    let filter = &options.filter;
    let (mut services, mut messages) = (None, String::new());
    phases
        .wait("build and start servers", async {
            // A compiler and a starting server hinder each other little, so neither waits for the other.
            let (built, (note, started)) = tokio::try_join!(built(build_command(compiler, &[], filter)), start(given))?;
            services = Some(started);
            messages = built;
            Ok(note)
        })
        .await?;
    let services = services.context("the servers did not start")?;
    if filter.is_empty() {
        let check = options.check.then(check_job).transpose()?;
        phases.wait("tests", all_tests(&messages, compiler, check, services.addresses())).await?;
    } else {
        phases.wait("tests", selected_tests(filter, services.addresses())).await?;
    }
    phases.run("stop servers", || {
        drop(services);
        Ok(String::new())
    })
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

/// All tests: of units, of crates, of the conformance suites (tests without harness), of the documentation, and the simulation. `messages`
/// is what cargo said when it built them, and `check` a job that runs beside the simulation.
async fn all_tests(messages: &str, compiler: &Compiler, check: Option<Job>, addresses: &Addresses) -> Result<String> {
    let programs = TestProgram::all(messages)?;
    // Those of the simulation are run when they are optimised.
    let programs = programs.iter().filter(|program| program.name() != simulation::TESTS);
    let (computing, waiting): (Vec<_>, Vec<_>) = programs.partition(|program| program.computes());
    let job = |program: &TestProgram| Job::new(program.title(), program.command());
    // First, since cargo tests one crate's documentation after the other: at the end the other lanes would be idle.
    let documentation = test_command(compiler, &["--doc"], &[]);
    let documentation = Job::new(shown(&documentation), documentation);
    let jobs = [documentation].into_iter().chain(waiting.into_iter().map(job)).collect();
    let background = async {
        // Cargo locks the folder that it builds in. The documentation needs it for a moment, and is not to wait for a whole build.
        tokio::time::sleep(HEAD_START).await;
        let simulation = Simulation::build(compiler).await?;
        // The longest first.
        let jobs = check.into_iter().chain(simulation.into_jobs()).chain(computing.into_iter().map(job));
        Ok(jobs.map(Job::in_background).collect())
    };
    run_jobs(jobs, background, addresses).await
}

/// `cargo xtask check`, by this program, of what clippy has compiled.
fn check_job() -> Result<Job> {
    let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
    command.args(["check", "--linted"]);
    Ok(Job::new(shown(&command), command))
}

/// The tests that `filter` selects, one after the other by cargo itself, so that a person sees them come.
async fn selected_tests(filter: &[String], addresses: &Addresses) -> Result<String> {
    let mut command = test_command(&Compiler::Rustc, &[], filter);
    command.envs(addresses.variables());
    let totals = run_tests(command, &mut std::io::stdout()).await?;
    Ok(format!("{}; only what `{}` selects, and no simulation", totals.note(), filter.join(" ")))
}
