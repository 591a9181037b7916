//! One command of a batch.

use std::sync::Arc;
use std::time::Duration;

use super::chained_steps::{ChainedStep, ChainedSteps};
use crate::engine::execute::attempt::{Attempts, erred};
use crate::engine::instance::{AttemptResult, InlineStart, PendingCommit, WorkItem};
use crate::machine::{Ending, Next};
use crate::store::{Changes, Claim, SagaId, Store, TransactError};

/// One command of a batch.
pub(crate) struct BatchEntry<S: Store> {
    /// Taken out while its handler runs.
    pub(crate) command: Option<Box<WorkItem<S>>>,
    /// The ids for the commands that follow.
    pub(crate) next_ids: i64,
    pub(crate) granted: bool,
    pub(crate) attempted: Option<(AttemptResult, Next)>,
    pub(crate) pending: Option<PendingCommit<S>>,
    /// Set where the transaction starts the saga as well.
    pub(crate) inline_start: Option<Box<InlineStart>>,
    /// The steps of the same saga that were done before the present one in this transaction.
    pub(crate) chained: Vec<ChainedStep>,
    /// What they leave to be recorded.
    pub(crate) chained_changes: Option<ChainedSteps<S>>,
    /// Whether its last attempt failed in company: it is to run alone, and only that counts.
    pub(crate) reruns_alone: bool,
    /// What was prepared last, where it may be asked for again: what a saga ran on through cannot be prepared twice.
    pub(crate) prepared_changes: Option<Box<Changes>>,
}

impl<S: Store> BatchEntry<S> {
    pub(crate) fn claim(&self) -> Option<Claim> {
        let start = self.inline_start.as_ref().map(|starting| Arc::clone(&starting.saga));
        self.command.as_ref().map(|command| Claim { start, ..command.claim() })
    }

    pub(crate) fn has_branches(&self) -> bool {
        self.command.as_ref().is_some_and(|command| command.saga.definition.width > 1)
    }

    pub(crate) fn is_of(&self, saga: SagaId) -> bool {
        self.command.as_ref().is_some_and(|command| command.saga.id == saga)
    }

    /// Whether the attempt that just failed would be the last one, and others ran in its transaction: what they left there
    /// may have made it fail.
    pub(crate) fn failed_in_company(&self, company: usize) -> bool {
        let is_last = |(attempted, next): &(AttemptResult, Next)| {
            matches!(attempted.ending, Ending::Erred { .. }) && matches!(next, Next::Settled(_))
        };
        (company > 1 || self.has_chained()) && self.attempted.as_ref().is_some_and(is_last)
    }

    /// Counts the attempt that just failed for nothing. Where nothing is to be recorded of the saga, it runs again alone,
    /// and else its step is left for later.
    pub(crate) fn discount_attempt(&mut self) {
        let Some((mut attempted, _)) = self.attempted.take() else { return };
        if self.chained_changes.is_none() && self.inline_start.is_none() {
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

    /// Says that the attempt ended otherwise than the handler let it look.
    pub(crate) fn judge(&mut self, attempts: &Attempts<S>, ending: Ending) {
        let Some(command) = &self.command else { return };
        let mut findings = self.attempted.take().map(|(attempted, _)| attempted.findings).unwrap_or_default();
        (findings.output, findings.emitted) = (None, Vec::new());
        findings.attempts = command.attempt_number();
        let attempted = AttemptResult { ending, findings };
        let next = attempts.decider.after(command, &attempted);
        self.attempted = Some((attempted, next));
    }
}

impl<S: Store> BatchEntry<S> {
    /// Says of the handler that is to blame how its attempt ended.
    pub(crate) fn judge_failed(&mut self, attempts: &Attempts<S>, error: &TransactError) {
        if error.ended_transaction {
            self.judge(
                attempts,
                Ending::Broke { message: "step ended its transaction, or left one open in it".to_owned() },
            );
        } else if !matches!(&self.attempted, Some((attempted, _)) if attempted.ending != Ending::Done) {
            self.judge(attempts, erred(error.to_string()));
        }
    }
}
