use std::fmt;

use super::super::refusal::{Refusal, write_reasons};

/// The restarts of sagas that were compensated or stuck.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restarts {
    pub(super) tried: u64,
    pub(super) begun: u64,
    pub(super) mixed: u64,
    pub(super) refused: Vec<Refusal>,
}

impl Restarts {
    /// How many restarts were tried: of each saga that was compensated or stuck, from each step.
    pub fn tried(&self) -> u64 {
        self.tried
    }

    /// How many of them were made.
    pub fn begun(&self) -> u64 {
        self.begun
    }

    /// In how many runs the two sagas left what none does alone ([`Restarted::amounts_to`](super::Restarted::amounts_to) says
    /// nothing of it), so that only an [`audit_restarted`](super::super::Explore::audit_restarted) of the user's own judged it.
    pub fn mixed(&self) -> u64 {
        self.mixed
    }

    /// Those that are not allowed, each with the reason.
    pub fn refused(&self) -> &[Refusal] {
        &self.refused
    }
}

impl fmt::Display for Restarts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tried, begun, mixed, refused } = self;
        write!(f, "restarted {begun} of {tried} times, {mixed} runs left what one saga alone does not")?;
        write_reasons(f, refused, |times, reason| format!("not restarted {times} times: {reason}"))
    }
}
