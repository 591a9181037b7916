use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

use crate::world::Transport;

/// The result of a run.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    /// The seed of the plan.
    pub seed: u64,
    /// What carried the messages.
    pub transport: Transport,
    /// Whether what has ended was purged.
    pub purges: bool,
    /// For how long there were faults, in seconds.
    pub faults_seconds: u64,
    /// What was done and what was counted.
    pub figures: Vec<Row>,
    /// What is wrong. Nothing, where all is as it should be.
    pub problems: Vec<String>,
    /// Effects outside of calls that landed after their undo, on a side that did not honour its key.
    pub remainder: u64,
    /// The orders among which they are, as the checker reported them.
    pub reported: Vec<String>,
    /// What the same judgement finds when one card was charged once more than it was and, in a run that purges, a dead letter was open
    /// about an order that was purged. It must find both.
    pub planted: Vec<String>,
    /// The folder with everything, where something is wrong.
    pub folder: Option<PathBuf>,
}

/// One figure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// What is counted.
    pub name: &'static str,
    /// How many, or how long in whole seconds.
    pub value: u64,
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_green(&self) -> bool {
        self.problems.is_empty()
    }

    /// A figure by its name; nothing has been counted of what is not there.
    pub fn figure(&self, name: &str) -> u64 {
        self.figures.iter().find(|row| row.name == name).map_or(0, |row| row.value)
    }

    pub(crate) fn count(&mut self, name: &'static str, value: u64) {
        self.figures.push(Row { name, value });
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "chaos with seed {}, {} s of faults", self.seed, self.faults_seconds)?;
        for Row { name, value } in &self.figures {
            writeln!(f, "  {name:<44} {value:>10}")?;
        }
        for problem in &self.problems {
            writeln!(f, "WRONG: {problem}")?;
        }
        if let Some(folder) = &self.folder {
            writeln!(f, "everything is in {}", folder.display())?;
        }
        let verdict = if self.is_green() { "nothing is wrong" } else { "something is wrong" };
        let Self { seed, transport, faults_seconds, .. } = self;
        let retention = if self.purges { " --retention" } else { "" };
        writeln!(
            f,
            "{verdict}; again: cargo xtask chaos --transport {transport} --seed {seed} --seconds {faults_seconds}{retention}"
        )
    }
}
