use std::sync::Arc;

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
    pub(super) command: Option<Command<S>>,
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
