use std::time::Duration;

const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(10);

/// Growing pauses between attempts.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    attempts: u32,
}

impl Backoff {
    pub(crate) fn next(&mut self) -> Duration {
        let pause = FIRST.saturating_mul(2_u32.saturating_pow(self.attempts));
        self.attempts = self.attempts.saturating_add(1);
        pause.min(LONGEST)
    }

    /// How many attempts failed since one succeeded.
    pub(crate) fn attempts(&self) -> u32 {
        self.attempts
    }

    pub(crate) fn reset(&mut self) {
        self.attempts = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_their_limit() {
        let mut backoff = Backoff::default();
        assert_eq!([backoff.next(), backoff.next(), backoff.next()], [FIRST, FIRST * 2, FIRST * 4]);
        for _ in 0..100 {
            assert!(backoff.next() <= LONGEST);
        }
        backoff.reset();
        assert_eq!((backoff.attempts(), backoff.next()), (0, FIRST));
    }
}
