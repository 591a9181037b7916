use std::sync::Arc;
use std::time::Duration;

use super::attempt::Attempted;
use super::command::Command;
use super::prepared::Prepared;
use super::run_on::{RanBefore, RanStep};
use super::shared::Shared;
use super::starting::Starting;
use crate::machine::{Ending, Next};
use crate::store::{Changes, Claim, SagaId, Store};

/// One command of a batch.
pub(super) struct Member<S: Store> {
    /// Taken out while its handler runs.
    pub(super) command: Option<Box<Command<S>>>,
    /// The ids for the commands that follow.
    pub(super) next_ids: i64,
    pub(super) granted: bool,
    pub(super) attempted: Option<(Attempted, Next)>,
    pub(super) prepared: Option<Prepared<S>>,
    /// Set where the transaction starts the saga as well.
    pub(super) starting: Option<Box<Starting>>,
    /// The steps of the same saga that were done before the present one in this transaction.
    pub(super) ran: Vec<RanStep>,
    /// What they leave to be recorded.
    pub(super) before: Option<RanBefore<S>>,
    /// Whether its last attempt failed in company: it is to run alone, and only that counts.
    pub(super) runs_apart: bool,
    /// What was prepared last, where it may be asked for again: what a saga ran on through cannot be prepared twice.
    pub(super) kept: Option<Box<Changes>>,
}

impl<S: Store> Member<S> {
    pub(super) fn claim(&self) -> Option<Claim> {
        let start = self.starting.as_ref().map(|starting| Arc::clone(&starting.saga));
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
        let is_last = |(attempted, next): &(Attempted, Next)| {
            matches!(attempted.ending, Ending::Erred { .. }) && matches!(next, Next::Settled(_))
        };
        (company > 1 || self.ran_on()) && self.attempted.as_ref().is_some_and(is_last)
    }

    /// Counts the attempt that just failed for nothing. Where nothing is to be recorded of the saga, it runs again alone,
    /// and else its step is left for later.
    pub(super) fn forgive(&mut self) {
        let Some((mut attempted, _)) = self.attempted.take() else { return };
        if self.before.is_none() && self.starting.is_none() {
            self.runs_apart = true;
            return;
        }
        let attempts = attempted.findings.attempts.saturating_sub(1);
        attempted.findings.attempts = attempts;
        if let Ending::Erred { message, .. } = &attempted.ending {
            let again = Next::Again { delay: Duration::ZERO, maybe: false, attempts, message: message.clone() };
            self.attempted = Some((attempted, again));
        }
    }

    /// Says that the attempt ended otherwise than the handler let it look.
    pub(super) fn judge(&mut self, shared: &Shared<S>, ending: Ending) {
        let Some(command) = &self.command else { return };
        let mut findings = self.attempted.take().map(|(attempted, _)| attempted.findings).unwrap_or_default();
        (findings.output, findings.emitted) = (None, Vec::new());
        findings.attempts = command.attempt_number();
        let attempted = Attempted { ending, findings };
        let next = shared.after(command, &attempted);
        self.attempted = Some((attempted, next));
    }
}
