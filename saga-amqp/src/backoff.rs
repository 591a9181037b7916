use std::time::Duration;

/// The first pause after a connection broke.
const FIRST: Duration = Duration::from_millis(100);

/// Growing pauses with jitter: many processes that lost one broker do not come back at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    cap: Duration,
    attempts: u32,
}

impl Backoff {
    pub(crate) fn new(cap: Duration) -> Self {
        Self { cap, attempts: 0 }
    }

    /// How often it failed since the last success.
    pub(crate) fn attempts(&self) -> u32 {
        self.attempts
    }

    /// It worked: the next pause is the first again.
    pub(crate) fn reset(&mut self) {
        self.attempts = 0;
    }

    /// The next pause: between half and the whole of a time that doubles up to the cap.
    pub(crate) fn next(&mut self) -> Duration {
        self.attempts = self.attempts.saturating_add(1);
        self.pause(fraction())
    }

    fn pause(&self, fraction: f64) -> Duration {
        let doublings = self.attempts.saturating_sub(1).min(16);
        let whole = FIRST.saturating_mul(1 << doublings).min(self.cap);
        whole / 2 + (whole / 2).mul_f64(fraction)
    }
}

/// A random number from 0 to 1.
fn fraction() -> f64 {
    f64::from(uuid::Uuid::new_v4().as_fields().0) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pauses_grow_up_to_the_cap_and_begin_again() {
        let mut backoff = Backoff::new(Duration::from_secs(1));
        let mut wholes = Vec::new();
        for _ in 0..8 {
            let pause = backoff.next();
            let whole = backoff.pause(1.0);
            assert!(pause >= whole / 2 && pause <= whole, "{pause:?} is not between half and the whole of {whole:?}");
            wholes.push(whole.as_millis());
        }
        assert_eq!(wholes, [100, 200, 400, 800, 1000, 1000, 1000, 1000]);
        backoff.reset();
        assert!(backoff.next() <= FIRST);
        assert_eq!(backoff.attempts(), 1);
    }
}
