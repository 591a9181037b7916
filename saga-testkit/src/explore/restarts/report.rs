use std::collections::BTreeMap;
use std::fmt;

use super::super::Refusal;

/// What came of starting sagas instead of others that had come to nothing.
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
        let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
        for refused in refused {
            *reasons.entry(&refused.reason).or_default() += 1;
        }
        for (reason, times) in reasons {
            write!(f, "\n- not restarted {times} times: {reason}")?;
        }
        Ok(())
    }
}
