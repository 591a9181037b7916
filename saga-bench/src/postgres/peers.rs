//! Other runtimes, as programs of the workspace `bench/peers`.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;
use serde_json::Value;

use super::measure::Done;
use super::work::Work;
use crate::clock::Stopwatch;

/// A peer that does not finish within this time is stopped and counts as failed.
const PATIENCE: Duration = Duration::from_mins(3);

/// The programs, and which subjects each of them runs.
#[derive(Debug, Default)]
pub(super) struct Peers {
    subjects: Vec<(String, PathBuf)>,
}

/// What a program tells of a run.
#[derive(Debug, Deserialize)]
struct Told {
    subject: String,
    steps: u32,
    seconds: f64,
    client_cpu_seconds: f64,
    durable: bool,
}

impl Peers {
    /// Builds the programs and asks them whom they run.
    pub(super) fn build() -> Result<Self> {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/peers/Cargo.toml");
        ensure!(manifest.is_file(), "there is no {}", manifest.display());
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo
            .args(["build", "--release", "--message-format=json-render-diagnostics", "--manifest-path"])
            .arg(&manifest);
        // Its own `target`, whatever this build was told.
        cargo.env_remove("CARGO_TARGET_DIR").stderr(Stdio::inherit());
        let output = cargo.output().context("cannot build the peers")?;
        ensure!(output.status.success(), "the peers do not build");
        let messages = String::from_utf8(output.stdout)?;
        let executables = messages.lines().filter_map(|line| {
            let message: Value = serde_json::from_str(line).ok()?;
            message["executable"].as_str().map(PathBuf::from)
        });
        let mut peers = Self::default();
        for program in executables {
            let output = Command::new(&program).arg("subjects").output()?;
            ensure!(output.status.success(), "{} does not tell its subjects", program.display());
            let names = String::from_utf8(output.stdout)?;
            peers.subjects.extend(names.lines().map(|name| (name.trim().to_owned(), program.clone())));
        }
        Ok(peers)
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.subjects.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Lets a program run in an empty database. It makes its tables, and counts what it left in them. Beside what it tells
    /// of the run, it answers the processor time that its process spent in it, without the start.
    pub(super) async fn run(
        &self,
        url: &str,
        name: &str,
        work: Work,
        sagas: u32,
        in_flight: u32,
    ) -> Result<(Done, f64)> {
        let program = self.subjects.iter().find(|(subject, _)| subject == name).map(|(_, program)| program);
        let mut command = Command::new(program.with_context(|| format!("there is no peer {name}"))?);
        command.args(["run", "--subject", name, "--url", url, "--work", &work.to_string()]);
        command.args([format!("--in-flight={in_flight}"), format!("--sagas={sagas}")]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn()?;
        let output = tokio::task::spawn_blocking(move || patiently(child)).await??;
        let error = String::from_utf8_lossy(&output.stderr);
        let last = error.lines().rev().take(5).collect::<Vec<_>>().join(" | ");
        ensure!(output.status.success(), "{name} ended with {}: {last}", output.status);
        let told: Told = serde_json::from_slice(&output.stdout).with_context(|| format!("{name} told no result"))?;
        ensure!(told.subject == name, "{name} ran {}", told.subject);
        let done = Done::new(told.steps, Duration::from_secs_f64(told.seconds));
        Ok((Done { is_volatile: !told.durable, ..done }, told.client_cpu_seconds))
    }
}

/// Waits for a program, but not for ever.
fn patiently(mut child: Child) -> Result<Output> {
    let watch = Stopwatch::started();
    // What it prints is little, and fits into its pipes.
    while child.try_wait()?.is_none() {
        if watch.elapsed() > PATIENCE {
            child.kill()?;
            child.wait()?;
            bail!("it did not end within {PATIENCE:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(child.wait_with_output()?)
}
