//! `cargo xtask test`: every test there is.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use saga_servers::{Addresses, ProcessGroup, Services, Signal};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::ChildStdout;

use super::packages::server_packages;
use super::prerequisites::c_compiler;
use super::sim::sim_command;
use crate::interrupt::{run_in_group, run_interruptibly};
use crate::phases::{Phases, now, shown};
use crate::workspace::cargo;

/// How many schedules a test run simulates. They are the same in every run, so a failure is nobody's bad luck.
const SIMULATED_SEEDS: &str = "20000";

/// Installs what is missing, starts the servers, runs the tests of the workspace, then the simulation.
///
/// With a `filter` only the tests that it selects run, and that is said.
pub(crate) fn test(filter: &[String]) -> Result<()> {
    let mut phases = Phases::of("test");
    let given = Addresses::from_environment()?;
    phases.run("prerequisites", || Ok(format!("{}; {}", c_compiler()?, server_packages()?)))?;
    run_interruptibly(run_all(&mut phases, filter, given))
}

/// What can be interrupted at any moment: the servers and the running command end when this is dropped.
async fn run_all(phases: &mut Phases, filter: &[String], given: Addresses) -> Result<()> {
    let mut services = None;
    phases
        .wait("build and start servers", async {
            // A compiler and a starting server hinder each other little, so neither waits for the other.
            let building = run_in_group(test_command(&["--no-run"], filter));
            let (started, ()) = tokio::try_join!(start(given), building)?;
            let (note, started) = started;
            services = Some(started);
            Ok(note)
        })
        .await?;
    let services = services.context("the servers did not start")?;
    phases.wait("cargo test", cargo_test(filter, services.addresses())).await?;
    phases.run("stop servers", || {
        drop(services);
        Ok(String::new())
    })?;
    if !filter.is_empty() {
        println!("\nonly what `{}` selects was run, and no simulation", filter.join(" "));
        return Ok(());
    }
    let silent = async |command| run_in_group(command).await.map(|()| String::new());
    phases.wait("build the simulation", silent(sim_command("build"))).await?;
    let mut simulation = sim_command("run");
    simulation.args(["--", "--seed-from", "0", "--seeds", SIMULATED_SEEDS]);
    phases.wait("simulation", silent(simulation)).await
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
async fn cargo_test(filter: &[String], addresses: &Addresses) -> Result<String> {
    let mut command = test_command(&[], filter);
    command.envs(addresses.variables()).stdout(Stdio::piped());
    eprintln!("$ {}", shown(&command));
    let name = shown(&command);
    let mut child = ProcessGroup::spawn(command, Signal::Term)?;
    let output = child.take_stdout().context("cargo test has no standard output")?;
    let mut lines = BufReader::new(ChildStdout::from_std(output)?).lines();
    let mut totals = Totals::default();
    while let Some(line) = lines.next_line().await.context("cannot read what cargo test prints")? {
        println!("{line}");
        totals.add(&line);
    }
    let status = child.wait().await?;
    println!("\n{}", totals.note());
    if !status.success() {
        bail!("`{name}` ended with {status}: {}", totals.note());
    }
    if filter.is_empty() && totals.passed == 0 {
        bail!("not one test was run");
    }
    Ok(totals.note())
}

fn test_command(options: &[&str], filter: &[String]) -> Command {
    let mut command = cargo();
    command.args(["test", "--workspace", "--no-fail-fast"]).args(options).args(filter).stdin(Stdio::null());
    if std::io::stdout().is_terminal() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    command
}

/// An address without its password: those that were given may be secret.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let end = rest.find('/').unwrap_or(rest.len());
    match (rest[..end].rfind('@'), rest.find(':')) {
        (Some(at), Some(colon)) if colon < at => format!("{scheme}://{}:..{}", &rest[..colon], &rest[at..]),
        _ => url.to_owned(),
    }
}

/// The sums of the `test result:` lines.
#[derive(Debug, Default)]
struct Totals {
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Totals {
    fn add(&mut self, line: &str) {
        let Some((_, counts)) = line.split_once("test result: ") else {
            return;
        };
        for part in counts.split(['.', ';']) {
            let mut words = part.split_whitespace();
            let (Some(Ok(count)), Some(what)) = (words.next().map(str::parse::<u64>), words.next()) else {
                continue;
            };
            match what {
                "passed" => self.passed += count,
                "failed" => self.failed += count,
                "ignored" => self.ignored += count,
                _ => {}
            }
        }
    }

    fn note(&self) -> String {
        format!("{} passed, {} failed, {} ignored", self.passed, self.failed, self.ignored)
    }
}

#[cfg(test)]
mod tests {
    use super::{Totals, without_password};

    #[test]
    fn a_password_is_not_printed() {
        assert_eq!(without_password("amqp://me:secret@h:1/%2F"), "amqp://me:..@h:1/%2F");
        assert_eq!(without_password("postgres://postgres@h:1/x"), "postgres://postgres@h:1/x");
        assert_eq!(without_password("http://h:1"), "http://h:1");
    }

    #[test]
    fn the_result_lines_are_summed() {
        let mut totals = Totals::default();
        totals.add("test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.10s");
        totals.add("test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out");
        totals.add("test 7 passed; of nothing");
        assert_eq!(totals.note(), "14 passed, 1 failed, 1 ignored");
    }
}
