//! Which steps were clean lately, so that their handlers run without savepoints.
//!
//! A savepoint copies every page that is written behind it. A step whose handlers kept all they wrote many times in a
//! row runs without; its first failure rolls the group back, and it runs again with them.

use std::collections::HashMap;

/// Runs in a row without anything to take back until a step is trusted. A failure costs the group that is rolled back
/// with it, so a step that fails more often than once in about so many runs must keep its savepoints.
pub(crate) const TRUSTED_AFTER: u32 = 500;

#[derive(Debug)]
pub(crate) struct Trust {
    trusted_after: u32,
    clean_runs: HashMap<Box<str>, u32>,
}

impl Trust {
    pub(crate) fn new(trusted_after: u32) -> Self {
        Self { trusted_after, clean_runs: HashMap::new() }
    }

    pub(crate) fn is_trusted(&self, step: &str) -> bool {
        self.clean_runs.get(step).is_some_and(|runs| *runs >= self.trusted_after)
    }

    pub(crate) fn was_clean(&mut self, step: &str) {
        match self.clean_runs.get_mut(step) {
            Some(runs) => *runs = runs.saturating_add(1),
            None => _ = self.clean_runs.insert(step.into(), 1),
        }
    }

    pub(crate) fn failed(&mut self, step: &str) {
        self.clean_runs.remove(step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_is_earned_slowly_and_lost_at_once() {
        let mut trust = Trust::new(3);
        for runs in 0..3 {
            assert!(!trust.is_trusted("charge-card"), "after {runs} clean runs");
            trust.was_clean("charge-card");
        }
        assert!(trust.is_trusted("charge-card"));
        assert!(!trust.is_trusted("charge-card:undo"));
        trust.failed("charge-card");
        assert!(!trust.is_trusted("charge-card"));
    }
}
