//! How often the first attempt at a step fails, and what that makes its savepoints worth.
//!
//! A savepoint is a message, about half as dear as a handler's own statement. One for each handler is what a step pays
//! that fails all the time; one that never fails needs none, since a transaction that is rolled back runs again. Between
//! the two several handlers share a savepoint: where one fails, the others behind it run again.

/// Of so many of the latest attempts the rate is known. A step that never fails again needs no savepoints after some five
/// times as many.
const REMEMBERED: f32 = 128.0;

/// The rate of a step of which nothing is known.
const UNKNOWN: f32 = 1.0 / 16.0;

/// Below this rate it is cheaper to run a transaction again than to set savepoints in it.
const NEGLIGIBLE: f32 = 1.0 / 1_000.0;

/// What the handler of a step needs, so that its writes can be taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protection {
    /// A savepoint of its own.
    Own,
    /// A savepoint that it shares with so many of the same step, itself included.
    Shared(usize),
    /// None: what it wrote is taken back with all else.
    Spared,
}

/// How often the first attempt at a step failed lately.
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
        // With n behind one savepoint, each pays 1/n of it, and one in 1/rate makes n/2 others run again.
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
