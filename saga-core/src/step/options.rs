use std::time::Duration;

use super::{OnExhausted, RetryPolicy};

/// The options of a step or a compensation, as the attribute sets them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct StepOptions {
    retry: RetryOptions,
    /// How long one attempt may take.
    pub timeout: Duration,
    /// Whether the step may share a transaction with others.
    pub grouped: bool,
    /// Whether the runtime renews the lease of a call while it runs.
    pub exclusive: bool,
    /// Whether the step has no effect that must be undone.
    pub needs_no_compensation: bool,
    /// The most calls of the step that one process runs at once.
    pub max_concurrent: Option<usize>,
}

/// The parts of a retry policy that the attribute sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RetryOptions {
    attempts: Option<u32>,
    base: Option<Duration>,
    cap: Option<Duration>,
    give_up_after: Option<Duration>,
    on_exhausted: Option<OnExhausted>,
}

impl RetryOptions {
    const NONE: Self = Self { attempts: None, base: None, cap: None, give_up_after: None, on_exhausted: None };
}

impl StepOptions {
    /// The default time limit of an attempt.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
    /// The default options.
    pub const DEFAULT: Self = Self {
        retry: RetryOptions::NONE,
        timeout: Self::DEFAULT_TIMEOUT,
        grouped: true,
        exclusive: false,
        needs_no_compensation: false,
        max_concurrent: None,
    };

    /// Sets the number of attempts.
    #[must_use]
    pub const fn attempts(mut self, attempts: u32) -> Self {
        self.retry.attempts = Some(attempts);
        self
    }

    /// Sets the longest pause before the second attempt; it doubles with each further attempt.
    #[must_use]
    pub const fn base(mut self, base: Duration) -> Self {
        self.retry.base = Some(base);
        self
    }

    /// Sets the longest pause.
    #[must_use]
    pub const fn cap(mut self, cap: Duration) -> Self {
        self.retry.cap = Some(cap);
        self
    }

    /// Begins no attempt later than this after the first failed attempt.
    #[must_use]
    pub const fn give_up_after(mut self, give_up_after: Duration) -> Self {
        self.retry.give_up_after = Some(give_up_after);
        self
    }

    /// Says what follows when the attempts are used up, or their time is over.
    #[must_use]
    pub const fn on_exhausted(mut self, on_exhausted: OnExhausted) -> Self {
        self.retry.on_exhausted = Some(on_exhausted);
        self
    }

    /// Sets the time limit of an attempt.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Runs each call in its own transaction.
    #[must_use]
    pub const fn ungrouped(mut self) -> Self {
        self.grouped = false;
        self
    }

    /// Renews the lease while a call runs, and drops the call if that fails.
    #[must_use]
    pub const fn exclusive(mut self) -> Self {
        self.exclusive = true;
        self
    }

    /// Runs at most this many calls at once in one process.
    #[must_use]
    pub const fn max_concurrent(mut self, calls: usize) -> Self {
        self.max_concurrent = Some(calls);
        self
    }

    /// Declares that the step has no effect that must be undone.
    #[must_use]
    pub const fn no_compensation(mut self) -> Self {
        self.needs_no_compensation = true;
        self
    }
}

impl StepOptions {
    /// The retry policy of the step: what the attribute sets, and for the rest the default policy of the runtime. A `base` above
    /// the default `cap` raises it.
    pub fn retry_policy(&self, default: &RetryPolicy) -> RetryPolicy {
        let base = self.retry.base.unwrap_or(default.base);
        RetryPolicy {
            attempts: self.retry.attempts.or(default.attempts),
            base,
            cap: self.retry.cap.unwrap_or(default.cap.max(base)),
            give_up_after: self.retry.give_up_after.or(default.give_up_after),
            on_exhausted: self.retry.on_exhausted.unwrap_or(default.on_exhausted),
        }
    }
}

impl Default for StepOptions {
    fn default() -> Self {
        Self::DEFAULT
    }
}
