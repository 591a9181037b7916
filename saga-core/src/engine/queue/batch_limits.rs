//! How many commands of a step share a transaction, and which steps run in one transaction at a time.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::failure_rate::{FailureRate, Protection};
use super::refused_starts::RefusedStarts;
use crate::store::WorkId;

/// After a lock conflict, this many commands of the step run before its transactions run concurrently again.
const CALM_AFTER: u32 = 5_000;

/// A step whose last handler took longer than this shares no transaction: the others would wait for it.
pub(crate) const SLOW: Duration = Duration::from_millis(20);

/// How many commands of each step one transaction may carry. Steps that met locks share one transaction at a time, since two such
/// transactions would wait for each other. If such a step meets the lock of another process, its limit is halved; it grows by one
/// with each success.
#[derive(Debug)]
pub(crate) struct BatchLimits {
    batch_max: usize,
    /// The same for batch steps.
    batch_steps_max: usize,
    batch_steps: BTreeSet<&'static str>,
    steps: Mutex<Steps>,
    /// The first command of the transaction that runs contended steps now.
    contended: Mutex<Option<WorkId>>,
    /// The semantic locks with which sagas begin.
    pub(crate) refused_starts: RefusedStarts,
}

/// The steps by name. They are few, and names are usually the same static string, so a scan by pointer is fastest.
#[derive(Debug, Default)]
struct Steps(Vec<(&'static str, StepLimit)>);

impl Steps {
    fn position(&self, step: &'static str) -> Option<usize> {
        let is_same = |(name, _): &(&'static str, StepLimit)| std::ptr::eq(*name, step);
        self.0.iter().position(is_same).or_else(|| self.0.iter().position(|(name, _)| *name == step))
    }

    fn get(&self, step: &'static str) -> Option<&StepLimit> {
        self.position(step).map(|place| &self.0[place].1)
    }

    fn get_mut(&mut self, step: &'static str) -> Option<&mut StepLimit> {
        self.position(step).map(|place| &mut self.0[place].1)
    }

    fn of(&mut self, step: &'static str, limit: usize) -> &mut StepLimit {
        let place = self.position(step).unwrap_or_else(|| {
            self.0.push((step, StepLimit::new(limit)));
            self.0.len() - 1
        });
        &mut self.0[place].1
    }
}

#[derive(Debug, Clone, Copy)]
struct StepLimit {
    limit: usize,
    is_slow: bool,
    /// How many more commands run before the step counts as free of lock conflicts.
    calm_in: u32,
    /// How often the step and its compensation fail.
    doing: FailureRate,
    undoing: FailureRate,
}

impl StepLimit {
    fn new(limit: usize) -> Self {
        Self { limit, is_slow: false, calm_in: 0, doing: FailureRate::unknown(), undoing: FailureRate::unknown() }
    }

    fn succeeded(&mut self, batch_max: usize, took: Duration) {
        self.limit = (self.limit + 1).min(batch_max);
        self.is_slow = took > SLOW;
        self.calm_in = self.calm_in.saturating_sub(1);
    }

    fn failure_rate(&mut self, is_undo: bool) -> &mut FailureRate {
        if is_undo { &mut self.undoing } else { &mut self.doing }
    }
}

impl BatchLimits {
    pub(crate) fn new(
        batch_max: usize,
        batch_steps_max: usize,
        batch_steps: impl IntoIterator<Item = &'static str>,
    ) -> Self {
        Self {
            batch_max,
            batch_steps_max,
            batch_steps: batch_steps.into_iter().collect(),
            steps: Mutex::default(),
            contended: Mutex::default(),
            refused_starts: RefusedStarts::default(),
        }
    }

    /// How many commands of any steps one transaction may carry.
    pub(crate) fn batch_max(&self) -> usize {
        self.batch_max
    }

    pub(crate) fn of(&self, step: &'static str) -> usize {
        match self.lock().get(step) {
            Some(StepLimit { is_slow: true, .. }) => 1,
            Some(StepLimit { limit, .. }) => *limit,
            None => self.max_of(step),
        }
    }

    /// Whether the step is not known to be slow or to meet locks.
    pub(crate) fn is_open(&self, step: &'static str) -> bool {
        let max = self.max_of(step);
        self.lock().get(step).is_none_or(|step| !step.is_slow && step.limit == max)
    }

    /// Whether the step has run, and is neither slow nor meets locks.
    pub(crate) fn is_proven(&self, step: &'static str) -> bool {
        let max = self.max_of(step);
        self.lock().get(step).is_some_and(|step| !step.is_slow && step.limit == max)
    }

    /// A transaction with this step met the lock of another one.
    pub(crate) fn met_lock(&self, step: &'static str) {
        let batch_max = self.max_of(step);
        let mut steps = self.lock();
        let step = steps.of(step, batch_max);
        if step.calm_in > 0 {
            step.limit = (step.limit / 2).max(1);
        }
        step.calm_in = CALM_AFTER;
    }

    /// Transactions with this step run one at a time for a while, since one of them waited for a lock that another one had.
    pub(crate) fn run_one_at_a_time(&self, step: &'static str) {
        let batch_max = self.max_of(step);
        self.lock().of(step, batch_max).calm_in = CALM_AFTER;
    }

    /// Whether transactions with this step run one at a time.
    pub(crate) fn is_contended(&self, step: &'static str) -> bool {
        self.lock().get(step).is_some_and(|step| step.calm_in > 0)
    }

    /// Reserves the one transaction for contended steps; false if another one is under way.
    pub(crate) fn enter_contended(&self, first: WorkId) -> bool {
        let mut contended = self.contended.lock().unwrap_or_else(PoisonError::into_inner);
        let is_free = contended.is_none();
        if is_free {
            *contended = Some(first);
        }
        is_free
    }

    /// Frees that reservation if one of these commands holds it.
    pub(crate) fn leave_contended(&self, mut commands: impl Iterator<Item = WorkId>) {
        let mut contended = self.contended.lock().unwrap_or_else(PoisonError::into_inner);
        contended.take_if(|first| commands.any(|command| command == *first));
    }

    pub(crate) fn halve(&self, step: &'static str) {
        let batch_max = self.max_of(step);
        let mut steps = self.lock();
        let step = steps.of(step, batch_max);
        step.limit = (step.limit / 2).max(1);
    }

    /// The savepoint that the step, or its compensation, needs.
    pub(crate) fn protection_of(&self, step: &'static str, is_undo: bool) -> Protection {
        let rate = self.lock().get_mut(step).map_or(FailureRate::unknown(), |step| *step.failure_rate(is_undo));
        rate.protection()
    }

    /// A first attempt of the step, or of its compensation, failed.
    pub(crate) fn failed(&self, step: &'static str, is_undo: bool) {
        let batch_max = self.max_of(step);
        let mut steps = self.lock();
        steps.of(step, batch_max).failure_rate(is_undo).failed();
    }

    /// The step, or its compensation, was done.
    pub(crate) fn was_done(&self, step: &'static str, is_undo: bool, took: Duration) {
        let batch_max = self.max_of(step);
        let mut steps = self.lock();
        let step = steps.of(step, batch_max);
        step.succeeded(batch_max, took);
        step.failure_rate(is_undo).succeeded();
    }

    /// The transaction of the step was committed, whether or not the step succeeded.
    pub(crate) fn succeeded(&self, step: &'static str, took: Duration) {
        let batch_max = self.max_of(step);
        self.lock().of(step, batch_max).succeeded(batch_max, took);
    }

    fn max_of(&self, step: &'static str) -> usize {
        if !self.batch_steps.is_empty() && self.batch_steps.contains(step) {
            self.batch_steps_max
        } else {
            self.batch_max
        }
    }

    fn lock(&self) -> MutexGuard<'_, Steps> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_that_waited_for_locks_run_one_at_a_time_for_a_while() {
        let limits = BatchLimits::new(8, 8, []);
        let succeed = |times: u32| (0..times).for_each(|_| limits.succeeded("hot", Duration::ZERO));
        limits.run_one_at_a_time("hot");
        assert!(limits.is_contended("hot") && !limits.is_contended("cold"));
        assert_eq!(limits.of("hot"), 8, "it met no lock of a row");
        succeed(CALM_AFTER - 1);
        assert!(limits.is_contended("hot"));
        succeed(1);
        assert!(!limits.is_contended("hot"));
    }

    #[test]
    fn steps_that_met_locks_run_one_at_a_time_until_they_are_calm() {
        let limits = BatchLimits::new(8, 8, []);
        limits.met_lock("hot");
        assert!(limits.is_contended("hot") && !limits.is_contended("cold"));
        assert_eq!(limits.of("hot"), 8, "alone it may carry as many as before");
        assert!(limits.enter_contended(WorkId(1)) && !limits.enter_contended(WorkId(2)));
        limits.leave_contended([WorkId(2)].into_iter());
        assert!(!limits.enter_contended(WorkId(2)), "another transaction ended");
        limits.leave_contended([WorkId(0), WorkId(1)].into_iter());
        assert!(limits.enter_contended(WorkId(2)));
        limits.met_lock("hot");
        assert_eq!(limits.of("hot"), 4, "it met somebody else");
        (0..CALM_AFTER).for_each(|_| limits.succeeded("hot", Duration::ZERO));
        assert!(!limits.is_contended("hot") && limits.of("hot") == 8);
    }
}
