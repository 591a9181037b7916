use std::fmt;

use super::moves::Moves;
use super::restarts::Restarts;

/// What an exploration did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exploration {
    pub(super) runs: u64,
    pub(super) boundaries: Vec<String>,
    pub(super) crashes: u64,
    pub(super) completed: u64,
    pub(super) compensated: u64,
    pub(super) operated: u64,
    pub(super) unreached: u64,
    pub(super) compared: u64,
    pub(super) left_out: Vec<&'static str>,
    pub(super) moves: Option<Moves>,
    pub(super) restarts: Option<Restarts>,
}

/// One run in which something was wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// What was done to it.
    pub disturbance: String,
    /// What was wrong.
    pub problem: String,
}

/// Something was wrong in an exploration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failures {
    /// The runs.
    pub broken: Vec<Broken>,
    /// What was done in all.
    pub exploration: Exploration,
}

impl Exploration {
    /// How many times the saga was run.
    pub fn runs(&self) -> u64 {
        self.runs
    }

    /// How many times the process was crashed: once at each boundary, and where the saga is moved or restarted, once at
    /// each boundary behind that.
    pub fn crashes(&self) -> u64 {
        self.crashes
    }

    /// The boundaries that the saga passes, forward and back.
    pub fn boundaries(&self) -> &[String] {
        &self.boundaries
    }

    /// How many runs completed.
    pub fn completed(&self) -> u64 {
        self.completed
    }

    /// How many runs were compensated.
    pub fn compensated(&self) -> u64 {
        self.compensated
    }

    /// How many runs did not reach what was to be disturbed in them, however often they were made. That is an error for a
    /// saga without parallel groups; with them it depends on which branch comes first.
    pub fn unreached(&self) -> u64 {
        self.unreached
    }

    /// How many runs were stuck as designed, and went on when they were tried again.
    pub fn operated(&self) -> u64 {
        self.operated
    }

    /// The steps that were not disturbed, since they stand in arms of choices that the input does not take. Explore the saga
    /// with another input as well, which takes them.
    pub fn left_out(&self) -> &[&'static str] {
        &self.left_out
    }

    /// The moves of the [migration](super::Explore::migration), where there is one.
    pub fn moves(&self) -> Option<&Moves> {
        self.moves.as_ref()
    }

    /// The results of the [restarts](super::Explore::restarts), where they are explored.
    pub fn restarts(&self) -> Option<&Restarts> {
        self.restarts.as_ref()
    }

    /// How many runs had an input that a batch step rejected, and compared the tables around that.
    pub fn compared(&self) -> u64 {
        self.compared
    }
}

impl fmt::Display for Exploration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} runs, {} crashes at {} boundaries; {} completed, {} compensated, {} went on when they were tried again",
            self.runs,
            self.crashes,
            self.boundaries.len(),
            self.completed,
            self.compensated,
            self.operated
        )?;
        if self.compared > 0 {
            write!(f, ", {} compared the tables around a rejected answer", self.compared)?;
        }
        if !self.left_out.is_empty() {
            write!(f, "; in arms that were not taken, and left out: {}", self.left_out.join(", "))?;
        }
        if let Some(moves) = &self.moves {
            write!(f, "; {moves}")?;
        }
        if let Some(restarts) = &self.restarts {
            write!(f, "; {restarts}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} of {} runs went wrong:", self.broken.len(), self.exploration.runs)?;
        for broken in &self.broken {
            writeln!(f, "- {}: {}", broken.disturbance, broken.problem)?;
        }
        write!(f, "{}", self.exploration)
    }
}

impl std::error::Error for Failures {}
