use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A handler that took longer than this lately is not grouped with others: they would wait for it.
pub(super) const SLOW: Duration = Duration::from_millis(20);

/// How many commands of each step one transaction may carry. A limit is halved when a batch with that step met a lock
/// that somebody else held, and grows by one with each success.
#[derive(Debug)]
pub(super) struct BatchLimits {
    batch_max: usize,
    /// The same for batch steps, and which these are.
    batch_steps_max: usize,
    batch_steps: BTreeSet<&'static str>,
    steps: Mutex<BTreeMap<&'static str, StepLimit>>,
}

#[derive(Debug, Clone, Copy)]
struct StepLimit {
    limit: usize,
    is_slow: bool,
}

impl BatchLimits {
    pub(super) fn new(
        batch_max: usize,
        batch_steps_max: usize,
        batch_steps: impl IntoIterator<Item = &'static str>,
    ) -> Self {
        let batch_steps = batch_steps.into_iter().collect();
        Self { batch_max, batch_steps_max, batch_steps, steps: Mutex::default() }
    }

    /// How many commands of any steps one transaction may carry.
    pub(super) fn batch_max(&self) -> usize {
        self.batch_max
    }

    pub(super) fn of(&self, step: &'static str) -> usize {
        match self.lock().get(step) {
            Some(StepLimit { is_slow: true, .. }) => 1,
            Some(StepLimit { limit, .. }) => *limit,
            None => self.max_of(step),
        }
    }

    /// Whether the step was neither slow nor in the way of locks lately.
    pub(super) fn is_open(&self, step: &'static str) -> bool {
        let max = self.max_of(step);
        self.lock().get(step).is_none_or(|step| !step.is_slow && step.limit == max)
    }

    /// Whether the step is known to be neither slow nor in the way of locks.
    pub(super) fn is_proven(&self, step: &'static str) -> bool {
        let max = self.max_of(step);
        self.lock().get(step).is_some_and(|step| !step.is_slow && step.limit == max)
    }

    pub(super) fn halve(&self, step: &'static str) {
        let batch_max = self.max_of(step);
        let mut steps = self.lock();
        let step = steps.entry(step).or_insert(StepLimit { limit: batch_max, is_slow: false });
        step.limit = (step.limit / 2).max(1);
    }

    pub(super) fn succeeded(&self, step: &'static str, took: Duration) {
        let batch_max = self.max_of(step);
        let mut steps = self.lock();
        let step = steps.entry(step).or_insert(StepLimit { limit: batch_max, is_slow: false });
        step.limit = (step.limit + 1).min(batch_max);
        step.is_slow = took > SLOW;
    }

    fn max_of(&self, step: &'static str) -> usize {
        if self.batch_steps.contains(step) { self.batch_steps_max } else { self.batch_max }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, StepLimit>> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
