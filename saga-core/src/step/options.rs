use std::time::Duration;

use super::RetryPolicy;

/// What the attribute of a step or of a compensation sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct StepOptions {
    /// How often the call is tried, and how long the runtime waits in between.
    pub retry: RetryPolicy,
    /// How long one call may take.
    pub timeout: Duration,
    /// Whether the step may share a transaction with others.
    pub grouped: bool,
    /// Whether its claim is kept by a heartbeat while it runs, so that no other process begins it meanwhile.
    pub exclusive: bool,
    /// Whether the step says that nothing has to be undone for it.
    pub needs_no_compensation: bool,
    /// How many calls of it one process makes at a time, at most.
    pub max_concurrent: Option<usize>,
}

impl StepOptions {
    /// How long one call may take, where nothing else is said.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
    /// What holds where nothing else is said.
    pub const DEFAULT: Self = Self {
        retry: RetryPolicy::DEFAULT,
        timeout: Self::DEFAULT_TIMEOUT,
        grouped: true,
        exclusive: false,
        needs_no_compensation: false,
        max_concurrent: None,
    };

    /// Tries the call this often in all.
    #[must_use]
    pub const fn attempts(mut self, attempts: u32) -> Self {
        self.retry.attempts = attempts;
        self
    }

    /// Waits at most this long before the second attempt, twice as long before the third, and so on.
    #[must_use]
    pub const fn base(mut self, base: Duration) -> Self {
        self.retry.base = base;
        self
    }

    /// Waits at most this long before any attempt.
    #[must_use]
    pub const fn cap(mut self, cap: Duration) -> Self {
        self.retry.cap = cap;
        self
    }

    /// Makes no further call later than this after the first one failed, however many attempts are left.
    #[must_use]
    pub const fn give_up_after(mut self, give_up_after: Duration) -> Self {
        self.retry.give_up_after = Some(give_up_after);
        self
    }

    /// Gives one call up after this long.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Runs each call in a transaction of its own.
    #[must_use]
    pub const fn ungrouped(mut self) -> Self {
        self.grouped = false;
        self
    }

    /// Keeps the claim by a heartbeat while a call lasts, and gives the call up when that fails.
    #[must_use]
    pub const fn exclusive(mut self) -> Self {
        self.exclusive = true;
        self
    }

    /// Makes at most this many calls at a time in one process.
    #[must_use]
    pub const fn max_concurrent(mut self, calls: usize) -> Self {
        self.max_concurrent = Some(calls);
        self
    }

    /// Says that nothing has to be undone for the step.
    #[must_use]
    pub const fn no_compensation(mut self) -> Self {
        self.needs_no_compensation = true;
        self
    }
}

impl Default for StepOptions {
    fn default() -> Self {
        Self::DEFAULT
    }
}
