//! The phases of the task.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::num::NonZero;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use saga_servers::{Addresses, ProcessGroup, Services, Signal, without_password};
use tokio::io::AsyncReadExt as _;
use tokio::process::ChildStdout;

use super::failures::last_words;
use super::lanes::{Ended, Job, side_by_side};
use super::programs::TestProgram;
use super::totals::Totals;
use crate::interrupt::{run_in_group, run_interruptibly};
use crate::phases::{Phases, now, shown};
use crate::tasks::packages::server_packages;
use crate::tasks::prerequisites::{c_compiler, openssl};
use crate::tasks::sim::sim_command;
use crate::workspace::{WITH_SERVERS, cargo};

/// How many schedules a test run simulates. They are the same in every run, so a failure is never bad luck.
const SIMULATED_SEEDS: &str = "20000";

/// How many test programs run at once for each processor: they wait more than they compute.
const LANES_PER_PROCESSOR: usize = 1;

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
    let silent = async |command| run_in_group(command).await.map(|()| String::new());
    phases.wait("build the simulation", silent(sim_command("build"))).await?;
    let mut simulation = sim_command("run");
    simulation.args(["--", "--seed-from", "0", "--seeds", SIMULATED_SEEDS]);
    phases.wait("simulation", silent(simulation)).await
}

/// Builds what `filter` selects, or everything, and lists the programs with tests.
async fn build(filter: &[String]) -> Result<Vec<TestProgram>> {
    let mut command = test_command(&["--no-run", "--message-format=json-render-diagnostics"], filter);
    command.stdout(Stdio::piped());
    let name = shown(&command);
    eprintln!("$ {name}");
    let mut child = ProcessGroup::spawn(command, Signal::Term)?;
    let output = child.take_stdout().context("cargo has no standard output")?;
    let mut messages = String::new();
    let mut output = ChildStdout::from_std(output)?;
    output.read_to_string(&mut messages).await.context("cannot read what cargo built")?;
    let status = child.wait().await?;
    if !status.success() {
        bail!("`{name}` ended with {status}");
    }
    TestProgram::all(&messages)
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
    let programs = programs.iter().map(|program| Job { title: program.title(), command: program.command() });
    let documentation = Job { title: shown(&documentation), command: documentation };
    run_jobs(programs.chain([documentation]).collect(), addresses).await
}

/// The tests that `filter` selects, one after the other by cargo itself, so that a person sees them come.
async fn selected_tests(filter: &[String], addresses: &Addresses) -> Result<String> {
    let mut command = test_command(&[], filter);
    command.envs(addresses.variables());
    run_in_group(command).await?;
    Ok(format!("only what `{}` selects, and no simulation", filter.join(" ")))
}

/// Runs `jobs` side by side, prints what each printed when it ended, and fails at the end with the names of the failed.
async fn run_jobs(mut jobs: Vec<Job>, addresses: &Addresses) -> Result<String> {
    for job in &mut jobs {
        job.command.envs(addresses.variables());
    }
    let lanes = std::thread::available_parallelism().map_or(1, NonZero::get) * LANES_PER_PROCESSOR;
    let (mut totals, mut failed, mut titles) = (Totals::default(), Vec::new(), Vec::new());
    side_by_side(jobs, lanes, |Ended { title, status, took, output }| {
        println!("\n--- {title}: {status}, {:.1} s\n{output}", took.as_secs_f64());
        output.lines().for_each(|line| totals.add(line));
        if !status.success() {
            failed.push(format!("{title}\n{}", last_words(&output)));
            titles.push(title);
        }
    })
    .await?;
    println!("\n{}", totals.note());
    if !failed.is_empty() {
        bail!("{}; failed:\n{}\nThese programs failed:\n{}", totals.note(), failed.join("\n"), titles.join("\n"));
    }
    if totals.passed == 0 {
        bail!("not one test was run");
    }
    Ok(totals.note())
}

fn test_command(options: &[&str], filter: &[String]) -> Command {
    let mut command = cargo();
    command
        .args(["test", "--workspace", "--no-fail-fast", "--features", WITH_SERVERS])
        .args(options)
        .args(filter)
        .stdin(Stdio::null());
    if std::io::stdout().is_terminal() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    command
}
