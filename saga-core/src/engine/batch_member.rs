use std::sync::Arc;
use std::time::Duration;

use super::attempt::AttemptResult;
use super::command::WorkItem;
use super::prepared::PendingCommit;
use super::run_on::{ChainedStep, ChainedSteps};
use super::shared::EngineContext;
use super::starting::InlineStart;
use crate::machine::{Ending, Next};
use crate::store::{Changes, Claim, SagaId, Store};

/// One command of a batch.
pub(super) struct BatchEntry<S: Store> {
    /// Taken out while its handler runs.
    pub(super) command: Option<Box<WorkItem<S>>>,
    /// The ids for the commands that follow.
    pub(super) next_ids: i64,
    pub(super) granted: bool,
    pub(super) attempted: Option<(AttemptResult, Next)>,
    pub(super) pending: Option<PendingCommit<S>>,
    /// Set where the transaction starts the saga as well.
    pub(super) inline_start: Option<Box<InlineStart>>,
    /// The steps of the same saga that were done before the present one in this transaction.
    pub(super) chained: Vec<ChainedStep>,
    /// What they leave to be recorded.
    pub(super) chained_changes: Option<ChainedSteps<S>>,
    /// Whether its last attempt failed in company: it is to run alone, and only that counts.
    pub(super) reruns_alone: bool,
    /// What was prepared last, where it may be asked for again: what a saga ran on through cannot be prepared twice.
    pub(super) prepared_changes: Option<Box<Changes>>,
}

impl<S: Store> BatchEntry<S> {
    pub(super) fn claim(&self) -> Option<Claim> {
        let start = self.inline_start.as_ref().map(|starting| Arc::clone(&starting.saga));
        self.command.as_ref().map(|command| Claim { start, ..command.claim() })
    }

    pub(super) fn has_branches(&self) -> bool {
        self.command.as_ref().is_some_and(|command| command.saga.definition.width > 1)
    }

    pub(super) fn is_of(&self, saga: SagaId) -> bool {
        self.command.as_ref().is_some_and(|command| command.saga.id == saga)
    }

    /// Whether the attempt that just failed would be the last one, and others ran in its transaction: what they left there
    /// may have made it fail.
    pub(super) fn failed_in_company(&self, company: usize) -> bool {
        let is_last = |(attempted, next): &(AttemptResult, Next)| {
            matches!(attempted.ending, Ending::Erred { .. }) && matches!(next, Next::Settled(_))
        };
        (company > 1 || self.has_chained()) && self.attempted.as_ref().is_some_and(is_last)
    }

    /// Counts the attempt that just failed for nothing. Where nothing is to be recorded of the saga, it runs again alone,
    /// and else its step is left for later.
    pub(super) fn discount_attempt(&mut self) {
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
    pub(super) fn judge(&mut self, shared: &EngineContext<S>, ending: Ending) {
        let Some(command) = &self.command else { return };
        let mut findings = self.attempted.take().map(|(attempted, _)| attempted.findings).unwrap_or_default();
        (findings.output, findings.emitted) = (None, Vec::new());
        findings.attempts = command.attempt_number();
        let attempted = AttemptResult { ending, findings };
        let next = shared.after(command, &attempted);
        self.attempted = Some((attempted, next));
    }
}
