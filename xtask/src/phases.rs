//! The phases of a task: each is announced, timed and listed at the end, also when one failed.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// What ran so far. The summary is printed when the value is dropped, so a failure prints it too.
#[derive(Debug)]
pub(crate) struct Phases {
    task: &'static str,
    done: Vec<Phase>,
}

#[derive(Debug)]
struct Phase {
    name: &'static str,
    took: Duration,
    note: String,
}

impl Phases {
    pub(crate) fn of(task: &'static str) -> Self {
        Self { task, done: Vec::new() }
    }

    /// Runs `command`, without input; anything but success ends the task.
    pub(crate) fn command(&mut self, name: &'static str, command: &mut Command) -> Result<()> {
        self.run(name, || run(command).map(|()| String::new()))
    }

    /// Runs `body`; what it returns is the note beside the phase's time in the summary.
    pub(crate) fn run(&mut self, name: &'static str, body: impl FnOnce() -> Result<String>) -> Result<()> {
        let begun = self.begin(name);
        let outcome = body();
        self.end(name, begun, outcome)
    }

    /// As [`run`](Self::run), for a body that can be interrupted.
    pub(crate) async fn wait(&mut self, name: &'static str, body: impl Future<Output = Result<String>>) -> Result<()> {
        let begun = self.begin(name);
        let outcome = body.await;
        self.end(name, begun, outcome)
    }

    fn begin(&self, name: &'static str) -> Instant {
        println!("\n=== {}: {name}", self.task);
        now()
    }

    fn end(&mut self, name: &'static str, begun: Instant, outcome: Result<String>) -> Result<()> {
        let note = match &outcome {
            Ok(note) => note.clone(),
            Err(_) => "FAILED".to_owned(),
        };
        self.done.push(Phase { name, took: begun.elapsed(), note });
        outcome.map(drop).with_context(|| format!("{}: {name}", self.task))
    }
}

impl Drop for Phases {
    fn drop(&mut self) {
        let total: Duration = self.done.iter().map(|phase| phase.took).sum();
        println!("\n=== {}: summary", self.task);
        for Phase { name, took, note } in &self.done {
            println!("{name:<28} {:>8.1} s  {note}", took.as_secs_f64());
        }
        println!("{:<28} {:>8.1} s", "total", total.as_secs_f64());
    }
}

/// Runs one command without input, saying which, and fails with its status. What it prints on standard output is its own.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    eprintln!("$ {}", shown(command));
    let status = command.stdin(Stdio::null()).status().with_context(|| format!("cannot run `{}`", shown(command)))?;
    if !status.success() {
        bail!("`{}` ended with {status}", shown(command));
    }
    Ok(())
}

/// A command as one would type it.
pub(crate) fn shown(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

#[expect(clippy::disallowed_methods, reason = "a task's time is a person's waiting time; nothing is simulated here")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
