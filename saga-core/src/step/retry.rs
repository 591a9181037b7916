use std::time::Duration;

/// How often a call is attempted, the pauses between the attempts, and what follows the last one.
///
/// By default a call is attempted until it succeeds or rejects: nothing but a rejection, an operator or a deadline makes a saga
/// compensate.
///
/// The pause before attempt `n + 1` is drawn uniformly between zero and `base * 2^(n - 1)`, at most `cap` (full jitter), so
/// that sagas that failed together do not retry together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The number of attempts, including the first; at least 1. `None` is no limit.
    pub attempts: Option<u32>,
    /// The longest pause before the second attempt.
    pub base: Duration,
    /// The longest pause.
    pub cap: Duration,
    /// No attempt begins later than this after the first failed attempt.
    pub give_up_after: Option<Duration>,
    /// What follows when `attempts` or `give_up_after` is reached.
    pub on_exhausted: OnExhausted,
}

/// What follows when the attempts of a step are used up, or its time is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnExhausted {
    /// The saga is stuck: it waits for an operator, who retries the step, skips it or compensates the saga.
    #[default]
    Stuck,
    /// The saga compensates, as after a rejection. Where it cannot, since its pivot took effect or may have, the step is
    /// retried without a limit of attempts, and is stuck when its time is over.
    Compensate,
}

impl RetryPolicy {
    /// The default policy: attempts without a limit, with pauses that grow from 100 ms to a minute.
    pub const DEFAULT: Self = Self {
        attempts: None,
        base: Duration::from_millis(100),
        cap: Duration::from_mins(1),
        give_up_after: None,
        on_exhausted: OnExhausted::Stuck,
    };
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self::DEFAULT
    }
}
