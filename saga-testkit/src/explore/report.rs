use std::fmt;

use super::moves::Moves;
use super::restarts::Restarts;

/// The result of an exploration.
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

/// One failed run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The disturbance of the run.
    pub disturbance: String,
    /// What was wrong.
    pub problem: String,
}

/// A failed exploration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failures {
    /// The failed runs.
    pub broken: Vec<Broken>,
    /// The whole exploration.
    pub exploration: Exploration,
}

impl Exploration {
    /// How many times the saga was run.
    pub fn runs(&self) -> u64 {
        self.runs
    }

    /// How many times the process was crashed: once at each boundary and, after a move or a restart, once at each later
    /// boundary.
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

    /// How many runs did not reach the point to disturb, although they were repeated. This is an error for most sagas; with
    /// parallel groups, or with operator actions meanwhile, it depends on what comes first.
    pub fn unreached(&self) -> u64 {
        self.unreached
    }

    /// How many runs were stuck by design and ended after a retry.
    pub fn operated(&self) -> u64 {
        self.operated
    }

    /// The steps that were not disturbed, because the input does not take their arms. Explore the saga with another input as
    /// well.
    pub fn left_out(&self) -> &[&'static str] {
        &self.left_out
    }

    /// The moves of the [migration](super::Explore::migration), if there is one.
    pub fn moves(&self) -> Option<&Moves> {
        self.moves.as_ref()
    }

    /// The results of the [restarts](super::Explore::restarts), if they are explored.
    pub fn restarts(&self) -> Option<&Restarts> {
        self.restarts.as_ref()
    }

    /// How many runs compared the tables around a batch step that rejected the input.
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
        if self.unreached > 0 {
            write!(f, ", {} did not reach what they were to disturb", self.unreached)?;
        }
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
