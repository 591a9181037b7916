//! The programs of the peers' workspace: how they are built, asked and run.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;
use serde_json::Value;

/// A program that has not ended by then is stopped. The first run of one may fetch its server.
const PATIENCE: Duration = Duration::from_mins(5);

/// What the programs run, in the order in which they were built.
#[derive(Debug, Default)]
pub(crate) struct Programs {
    subjects: Vec<(String, PathBuf)>,
}

/// One run of one subject.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Job<'a> {
    pub(crate) subject: &'a str,
    /// `W` or `W-undo`.
    pub(crate) work: &'a str,
    pub(crate) in_flight: u32,
    pub(crate) sagas: u32,
}

/// What a program tells of its run.
#[derive(Debug, Deserialize)]
pub(crate) struct Told {
    subject: String,
    pub(crate) steps: u32,
    pub(crate) seconds: f64,
    /// Of the program, and of the servers that it started.
    pub(crate) client_cpu_seconds: f64,
    pub(crate) durable: bool,
}

impl Programs {
    /// Builds all programs in release, in the build folder of their own workspace, and asks them for their subjects.
    pub(crate) fn build() -> Result<Self> {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/peers/Cargo.toml");
        let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.args(["build", "--release", "--locked", "--message-format=json-render-diagnostics"]);
        command.arg("--manifest-path").arg(&manifest);
        command.env_remove("CARGO_TARGET_DIR").stdin(Stdio::null()).stderr(Stdio::inherit());
        let output = command.output().context("cannot run cargo")?;
        ensure!(
            output.status.success(),
            "the peers in bench/peers do not build: see what cargo says above, and bench/peers/README.md for what they need"
        );
        let messages = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut subjects = Vec::new();
        for program in messages.lines().filter_map(executable) {
            subjects.extend(subjects_of(&program)?.into_iter().map(|subject| (subject, program.clone())));
        }
        ensure!(!subjects.is_empty(), "{} has no programs", manifest.display());
        Ok(Self { subjects })
    }

    /// The subjects' names, or those of them that are `wanted`; one that is not there is an error.
    pub(crate) fn names(&self, wanted: &[String]) -> Result<Vec<&str>> {
        let all: Vec<&str> = self.subjects.iter().map(|(name, _)| name.as_str()).collect();
        if let Some(unknown) = wanted.iter().find(|name| !all.contains(&name.as_str())) {
            bail!("there is no peer `{unknown}`; there are {}", all.join(", "));
        }
        Ok(all.into_iter().filter(|name| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name)).collect())
    }

    /// Lets a program do its work in the empty database at `url`; it makes its tables, and counts what it left in them.
    pub(crate) async fn run(&self, url: &str, job: Job<'_>) -> Result<Told> {
        let Job { subject, work, in_flight, sagas } = job;
        let program = self.subjects.iter().find(|(name, _)| name == subject).map(|(_, program)| program);
        let program = program.with_context(|| format!("there is no peer `{subject}`"))?;
        let mut command = tokio::process::Command::new(program);
        command.args(["run", "--subject", subject, "--url", url, "--work", work]);
        command.args([format!("--in-flight={in_flight}"), format!("--sagas={sagas}")]);
        command.stdin(Stdio::null()).kill_on_drop(true);
        let ran = tokio::time::timeout(PATIENCE, command.output()).await;
        let output = ran.with_context(|| format!("it did not end within {} s", PATIENCE.as_secs()))??;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "it ended with {}: {}",
            output.status,
            said.lines().last().unwrap_or_default()
        );
        // What it builds on may write there as well.
        let printed = String::from_utf8_lossy(&output.stdout);
        let told = printed.lines().rev().find_map(|line| serde_json::from_str::<Told>(line).ok());
        let told = told.context("it told no result")?;
        ensure!(told.subject == subject, "it ran {} instead", told.subject);
        Ok(told)
    }
}

/// The program that a message of cargo is about.
fn executable(message: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    message["executable"].as_str().map(PathBuf::from)
}

fn subjects_of(program: &Path) -> Result<Vec<String>> {
    let output = Command::new(program).arg("subjects").stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot run {}", program.display()))?;
    ensure!(output.status.success(), "{} subjects ended with {}", program.display(), output.status);
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{Programs, executable};

    #[test]
    fn programs_are_found_among_cargos_messages() {
        assert_eq!(executable(r#"{"reason":"compiler-artifact","executable":"/t/peer-a"}"#), Some("/t/peer-a".into()));
        assert_eq!(executable(r#"{"reason":"compiler-artifact","executable":null}"#), None);
        assert_eq!(executable("no message"), None);
    }

    #[test]
    fn an_unknown_peer_is_named() {
        let subject = |name: &str| (name.to_owned(), PathBuf::from("/t/peer"));
        let programs = Programs { subjects: vec![subject("a"), subject("b")] };
        assert_eq!(programs.names(&[]).expect("all"), ["a", "b"]);
        assert_eq!(programs.names(&["b".to_owned()]).expect("one"), ["b"]);
        let error = programs.names(&["c".to_owned()]).expect_err("there is no c").to_string();
        assert_eq!(error, "there is no peer `c`; there are a, b");
    }
}
