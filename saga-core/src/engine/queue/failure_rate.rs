//! How often the first attempt of a step fails, and which savepoints are therefore worth their price.
//!
//! A savepoint is a message, and costs about half of a handler's own statement. A step that fails often gets a savepoint for each
//! handler. A step that never fails gets none: a transaction that is rolled back runs again. In between, several handlers share a
//! savepoint: if one of them fails, the others run again.

/// The rate covers about this many of the latest attempts. A step that stops failing loses its savepoints after about five times
/// as many.
const REMEMBERED: f32 = 128.0;

/// The assumed rate of a new step.
const UNKNOWN: f32 = 1.0 / 16.0;

/// Below this rate it is cheaper to run a transaction again than to set savepoints in it.
const NEGLIGIBLE: f32 = 1.0 / 1_000.0;

/// The savepoint that lets the writes of a handler be rolled back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protection {
    /// Its own savepoint.
    Own,
    /// One that this many handlers of the same step share.
    Shared(usize),
    /// None: its writes are rolled back with the whole transaction.
    Spared,
}

/// A moving average of how often the first attempt of a step fails.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FailureRate {
    rate: f32,
}

impl FailureRate {
    pub(crate) fn unknown() -> Self {
        Self { rate: UNKNOWN }
    }

    pub(crate) fn succeeded(&mut self) {
        self.rate -= self.rate / REMEMBERED;
    }

    pub(crate) fn failed(&mut self) {
        self.rate += (1.0 - self.rate) / REMEMBERED;
    }

    pub(crate) fn protection(self) -> Protection {
        if self.rate < NEGLIGIBLE {
            return Protection::Spared;
        }
        // With n handlers behind one savepoint, each pays 1/n of it, and a failure makes n/2 others run again.
        let together = 1.0 / self.rate.sqrt();
        #[expect(clippy::cast_sign_loss, reason = "a root has no sign")]
        match together as usize {
            0 | 1 => Protection::Own,
            together => Protection::Shared(together),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(succeeded: u32, failed: u32) -> FailureRate {
        let mut doubt = FailureRate::unknown();
        (0..failed).for_each(|_| doubt.failed());
        (0..succeeded).for_each(|_| doubt.succeeded());
        doubt
    }

    #[test]
    fn the_more_often_it_fails_the_fewer_share_a_savepoint() {
        assert_eq!(FailureRate::unknown().protection(), Protection::Shared(4));
        assert_eq!(after(0, 500).protection(), Protection::Own);
        assert_eq!(after(300, 0).protection(), Protection::Shared(12));
        assert_eq!(after(600, 0).protection(), Protection::Spared);
    }

    #[test]
    fn one_failure_costs_the_trust_for_a_while() {
        let mut doubt = after(5_000, 0);
        doubt.failed();
        assert_eq!(doubt.protection(), Protection::Shared(11));
        (0..300).for_each(|_| doubt.succeeded());
        assert_eq!(doubt.protection(), Protection::Spared);
    }
}
