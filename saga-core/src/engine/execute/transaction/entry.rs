//! One command of a step transaction, with what became of it.

use std::time::Duration;

use super::chained_steps::{ChainedStep, ChainedSteps};
use super::taken_locks::TakenLocks;
use crate::engine::execute::attempt::{Attempts, erred};
use crate::engine::instance::{AttemptResult, InlineRequest, PendingCommit, WorkItem};
use crate::machine::{Ending, Next};
use crate::store::{Changes, Claim, Store, TransactError};

/// One command of a step transaction.
pub(crate) struct BatchEntry<S: Store> {
    /// Taken out while its handler runs.
    pub(crate) command: Option<Box<WorkItem<S>>>,
    /// The first id for the commands that follow.
    pub(crate) next_ids: i64,
    pub(crate) granted: bool,
    pub(crate) attempted: Option<(AttemptResult, Next)>,
    pub(crate) pending: Option<PendingCommit<S>>,
    /// What the transaction also commits for the saga.
    pub(crate) inline: Option<InlineRequest>,
    /// The steps of the saga that were done in this transaction before the present one.
    pub(crate) chained: Vec<ChainedStep>,
    /// Their changes.
    pub(crate) chained_changes: Option<ChainedSteps<S>>,
    /// Whether its last attempt failed in a shared transaction: it runs again alone, and only that run counts.
    pub(crate) reruns_alone: bool,
    /// The changes as they were prepared, in case the store asks again: chained changes cannot be prepared twice.
    pub(crate) prepared_changes: Option<Box<Changes>>,
    /// The locks that the transaction takes for its steps.
    pub(crate) locks: TakenLocks,
    /// The step that was claimed, if the transaction takes locks.
    pub(crate) locking_step: Option<&'static str>,
}

impl<S: Store> BatchEntry<S> {
    /// A command that has not run, with the ids for the commands that follow from it.
    pub(crate) fn new(mut command: WorkItem<S>, next_ids: i64) -> Self {
        Self {
            inline: command.inline.take(),
            locking_step: (!command.wanted_locks.is_empty()).then(|| command.step().name),
            locks: TakenLocks::new(std::mem::take(&mut command.wanted_locks)),
            command: Some(Box::new(command)),
            next_ids,
            granted: false,
            attempted: None,
            pending: None,
            chained: Vec::new(),
            chained_changes: None,
            reruns_alone: false,
            prepared_changes: None,
        }
    }

    pub(crate) fn claim(&self) -> Option<Claim> {
        let own = Claim { locks: self.locks.wanted(), ..self.command.as_ref()?.claim() };
        Some(match &self.inline {
            Some(request) => request.claim(own),
            None => own,
        })
    }

    /// Whether the last attempt that the step may have just failed in a shared transaction: other handlers may have caused that.
    pub(crate) fn failed_last_attempt_in_batch(&self, batch_size: usize) -> bool {
        let is_last = |(attempted, next): &(AttemptResult, Next)| {
            matches!(attempted.ending, Ending::Erred { .. }) && matches!(next, Next::Settled(_))
        };
        (batch_size > 1 || self.has_chained()) && self.attempted.as_ref().is_some_and(is_last)
    }

    /// Does not count the attempt that just failed. The command runs again alone, or later if earlier steps have to be recorded.
    pub(crate) fn discount_attempt(&mut self) {
        let Some((mut attempted, _)) = self.attempted.take() else { return };
        if self.chained_changes.is_none() && self.inline.is_none() {
            self.reruns_alone = true;
            return;
        }
        let attempts = attempted.findings.attempts.saturating_sub(1);
        attempted.findings.attempts = attempts;
        if let Ending::Erred { message, .. } = &attempted.ending {
            let again = Next::Again { delay: Duration::ZERO, in_doubt: false, attempts, message: message.clone() };
            self.attempted = Some((attempted, again));
        }
    }

    /// Makes the error of the transaction the ending of this attempt.
    pub(crate) fn fail_with(&mut self, attempts: &Attempts<S>, error: &TransactError) {
        if error.ended_transaction {
            self.set_ending(
                attempts,
                Ending::Broke { message: "step ended its transaction, or left one open in it".to_owned() },
            );
        } else if !matches!(&self.attempted, Some((attempted, _)) if attempted.ending != Ending::Done) {
            self.set_ending(attempts, erred(error.to_string()));
        }
    }

    /// Replaces the ending that the handler reported.
    fn set_ending(&mut self, attempts: &Attempts<S>, ending: Ending) {
        let Some(command) = &self.command else { return };
        let mut findings = self.attempted.take().map(|(attempted, _)| attempted.findings).unwrap_or_default();
        (findings.output, findings.emitted) = (None, Vec::new());
        findings.attempts = command.attempt_number();
        let attempted = AttemptResult { ending, findings };
        let next = attempts.decider.after(command, &attempted);
        self.attempted = Some((attempted, next));
    }
}
