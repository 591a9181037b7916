//! `cargo xtask test`: every test there is.

use std::io::{BufRead as _, BufReader, IsTerminal as _};
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};

use super::prerequisites::c_compiler;
use super::sim::sim_command;
use crate::phases::{Phases, shown};
use crate::workspace::cargo;

/// How many schedules a test run simulates. They are the same in every run, so a failure is nobody's bad luck.
const SIMULATED_SEEDS: &str = "20000";

/// Installs what is missing, runs the tests of the workspace, then the simulation.
///
/// With a `filter` only the tests that it selects run, and that is said.
pub(crate) fn test(filter: &[String]) -> Result<()> {
    let mut phases = Phases::of("test");
    phases.run("prerequisites", c_compiler)?;
    phases.run("cargo test", || cargo_test(filter))?;
    if !filter.is_empty() {
        println!("\nonly what `{}` selects was run, and no simulation", filter.join(" "));
        return Ok(());
    }
    phases.command("build the simulation", &mut sim_command("build"))?;
    phases.command("simulation", sim_command("run").args(["--", "--seed-from", "0", "--seeds", SIMULATED_SEEDS]))
}

/// All tests: of units, of crates, of the conformance suites (tests without harness) and of the documentation.
fn cargo_test(filter: &[String]) -> Result<String> {
    let mut command = cargo();
    command.args(["test", "--workspace", "--no-fail-fast"]).args(filter);
    if std::io::stdout().is_terminal() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    eprintln!("$ {}", shown(&command));
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("cannot run cargo test")?;
    let output = child.stdout.take().context("cargo test has no standard output")?;
    let mut totals = Totals::default();
    for line in BufReader::new(output).lines() {
        let line = line.context("cannot read what cargo test prints")?;
        println!("{line}");
        totals.add(&line);
    }
    let status = child.wait().context("cannot wait for cargo test")?;
    println!("\n{}", totals.note());
    if !status.success() {
        bail!("`{}` ended with {status}: {}", shown(&command), totals.note());
    }
    if filter.is_empty() && totals.passed == 0 {
        bail!("not one test was run");
    }
    Ok(totals.note())
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
    use super::Totals;

    #[test]
    fn the_result_lines_are_summed() {
        let mut totals = Totals::default();
        totals.add("test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.10s");
        totals.add("test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out");
        totals.add("test 7 passed; of nothing");
        assert_eq!(totals.note(), "14 passed, 1 failed, 1 ignored");
    }
}
