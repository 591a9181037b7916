//! What a person can do with a saga, stuck or not.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use super::cancel::SagaDesk;
use super::command::InFlight;
use super::error::RuntimeError;
use super::prepared::{Findings, HandOn};
use super::shared::Shared;
use crate::key::{Key, Tenant};
use crate::machine::{Action, Event, StepPhase, Stuck};
use crate::store::{HistoryEntry, HistoryKind, Miss, SagaRow, Status, Store, StoreError, StoreErrorKind};

/// An operator's view of one saga. Every action names the revision that the operator saw, so that one which
/// meets a saga that has moved changes nothing, and the same action twice acts once. Each leaves a line in the saga's
/// history.
pub struct Operator<S: Store> {
    shared: Arc<Shared<S>>,
    tenant: Tenant,
    key: Key,
    revision: u64,
}

impl<S: Store> Operator<S> {
    pub(super) fn new(shared: &Arc<Shared<S>>, tenant: &Tenant, key: Key, revision: u64) -> Self {
        Self { shared: Arc::clone(shared), tenant: tenant.clone(), key, revision }
    }

    /// Tries again what is stuck, with fresh attempts and the same key.
    ///
    /// # Errors
    /// When the saga moved, is not stuck, or is not known here, or when the store fails.
    ///
    /// # Cancel safety
    /// When dropped, the action was done whole or not at all; do it again with the same revision to be sure.
    pub async fn retry(&self, reason: &str) -> Result<(), RuntimeError> {
        self.act(Action::Retry, None, reason).await
    }

    /// Goes past what is stuck. A step counts as done without an effect, and an undo leaves the effect as it is.
    ///
    /// Where nobody knows whether the step happened, as the reason then says, a call of it may still take effect, and
    /// nothing undoes that unless somebody reports the success.
    ///
    /// # Errors
    /// Those of [`Operator::retry`], and when a later step needs the output of the skipped one: then use
    /// [`Operator::skip_with`].
    ///
    /// # Cancel safety
    /// That of [`Operator::retry`].
    pub async fn skip(&self, reason: &str) -> Result<(), RuntimeError> {
        self.act(Action::Skip, None, reason).await
    }

    /// Goes past a stuck step, and gives the output that later steps take.
    ///
    /// # Errors
    /// Those of [`Operator::retry`], and when the output cannot be encoded.
    ///
    /// # Cancel safety
    /// That of [`Operator::retry`].
    pub async fn skip_with<T: Serialize + Sync>(&self, output: &T, reason: &str) -> Result<(), RuntimeError> {
        let output = serde_json::to_vec(output).map_err(|error| self.refused(format!("the output: {error}")))?;
        let output = self.shared.check_length(output).map_err(|problem| self.refused(problem))?;
        self.act(Action::Skip, Some(output), reason).await
    }

    /// Ends the saga as completed, as it is.
    ///
    /// # Errors
    /// Those of [`Operator::retry`].
    ///
    /// # Cancel safety
    /// That of [`Operator::retry`].
    pub async fn force_completed(&self, reason: &str) -> Result<(), RuntimeError> {
        self.act(Action::Force { completed: true, reason: reason.to_owned() }, None, reason).await
    }

    /// Ends the saga as compensated, as it is.
    ///
    /// # Errors
    /// Those of [`Operator::retry`].
    ///
    /// # Cancel safety
    /// That of [`Operator::retry`].
    pub async fn force_compensated(&self, reason: &str) -> Result<(), RuntimeError> {
        self.act(Action::Force { completed: false, reason: reason.to_owned() }, None, reason).await
    }

    /// Cancels the saga, stuck or not: it turns round, as [`Runtime::cancel`](super::Runtime::cancel) has it. One that is
    /// stuck turns round and stays stuck until somebody decided about what is stuck.
    ///
    /// # Errors
    /// When the saga moved, compensates or has ended already, is past its pivot, belongs to a saga of another service, or
    /// is not known here, or when the store fails.
    ///
    /// # Cancel safety
    /// That of [`Operator::retry`].
    pub async fn cancel(&self, reason: &str) -> Result<(), RuntimeError> {
        SagaDesk::of(&self.shared, &self.tenant).cancel_seen(&self.key, self.revision, reason).await
    }

    async fn act(&self, action: Action, output: Option<Vec<u8>>, reason: &str) -> Result<(), RuntimeError> {
        if super::guard::is_inside_step() {
            return Err(RuntimeError::InsideStep);
        }
        if reason.trim().is_empty() {
            return Err(self.refused("give a reason; it is kept with the action".to_owned()));
        }
        let mut saga = self.load().await?;
        self.check_output(&saga, &action, output.as_deref())?;
        let ids = self.shared.take_ids(saga.definition.width).await.ok_or(RuntimeError::Ended)?;
        let findings = Findings { output, ..Findings::default() };
        let hand_on = HandOn { ids: ids.start, has_place: false };
        let what = name_of(&action);
        let prepared = self.shared.advance(&mut saga, Event::Operator(action), &findings, hand_on);
        let mut prepared = prepared.map_err(|refused| self.refused(refused.to_string()))?;
        prepared.changes.history.push(HistoryEntry {
            saga: saga.id,
            step: None,
            kind: HistoryKind::Operator,
            attempt: 0,
            detail: format!("{what}: {reason}"),
        });
        let applied = self.shared.apply_prepared(prepared).await;
        match applied {
            Ok(Ok(())) => Ok(()),
            Ok(Err(Miss::Saga(row))) => Err(self.moved(&row)),
            Ok(Err(miss)) => Err(self.refused(format!("the action did not apply: {miss:?}"))),
            Err(error) => Err(RuntimeError::Store(
                StoreError::new(StoreErrorKind::Other, "operator", error.message).with_class(error.class),
            )),
        }
    }

    async fn load(&self) -> Result<InFlight<S>, RuntimeError> {
        let key = || self.key.to_string();
        let row = self.shared.store.saga(&self.tenant, &self.key).await?;
        let row = row.ok_or_else(|| RuntimeError::NoSaga(key()))?;
        if row.version != self.revision {
            return Err(self.moved(&row));
        }
        let Some(definition) = self.shared.definitions.get(&row.definition) else {
            return Err(RuntimeError::UnknownDefinition { key: key(), definition: row.definition.to_string() });
        };
        let records = self.shared.store.records_of(&self.tenant, &self.key).await?;
        let mut saga = InFlight::of_row(&row, records, definition)
            .map_err(|problem| RuntimeError::Unreadable { key: key(), problem })?;
        self.find_stuck(&mut saga, row.status).await?;
        if let Some((step, input)) =
            saga.state.stuck.as_ref().and_then(|stuck| Some((stuck.step, stuck.input.clone()?)))
        {
            saga.set_input(step, input.into_bytes().into());
        }
        Ok(saga)
    }

    /// A saga that could not be read was made stuck without its state saying so. Now that it can be read again, what was
    /// under way is what is stuck, unless it still has its command.
    async fn find_stuck(&self, saga: &mut InFlight<S>, status: Status) -> Result<(), StoreError> {
        if status != Status::Stuck || saga.state.stuck.is_some() {
            return Ok(());
        }
        let waits = match self.shared.store.saga_with_steps(&self.tenant, &self.key).await? {
            Some(stored) if saga.definition.width > 1 => stored.work,
            _ => Vec::new(),
        };
        let under_way = |phase| matches!(phase, StepPhase::Started | StepPhase::Undoing);
        let stuck = saga.state.steps.iter().enumerate().filter(|(_, step)| under_way(step.phase));
        let waits = |index| waits.iter().any(|work| work.step.step_and_item() == saga.doing(index).as_str());
        let stuck = stuck.filter(|(index, _)| !waits(*index)).map(|(index, step)| Stuck {
            step: index,
            undo: step.phase == StepPhase::Undoing,
            reason: "it could not be read".to_owned(),
            input: None,
        });
        let mut stuck: VecDeque<Stuck> = stuck.collect();
        (saga.state.stuck, saga.state.stuck_too) = (stuck.pop_front(), stuck.into());
        Ok(())
    }

    /// A step that is skipped gives an output if a later step takes one.
    fn check_output(&self, saga: &InFlight<S>, action: &Action, output: Option<&[u8]>) -> Result<(), RuntimeError> {
        let (Action::Skip, Some(stuck)) = (action, &saga.state.stuck) else { return Ok(()) };
        let (step, base) = (saga.step(stuck.step), saga.state.base(stuck.step));
        let name = saga.doing(stuck.step);
        let later = &saga.definition.steps[base + 1..];
        let taker = later.iter().find(|later| later.takes_output_of(step.name));
        let check = step.check_list.filter(|_| base == stuck.step).unwrap_or(step.check_output);
        match (taker, output) {
            (_, Some(output)) if !stuck.undo => {
                check(output).map_err(|problem| self.refused(format!("`{name}` cannot have this output: {problem}")))
            }
            (Some(taker), None) if !stuck.undo => Err(self.refused(format!(
                "the step `{}` takes the output of `{name}`; skip it with `skip_with` and that output",
                taker.name
            ))),
            _ => Ok(()),
        }
    }

    fn moved(&self, row: &SagaRow) -> RuntimeError {
        RuntimeError::Moved { key: self.key.to_string(), status: row.status, version: row.version }
    }

    fn refused(&self, problem: String) -> RuntimeError {
        RuntimeError::Refused { key: self.key.to_string(), problem }
    }
}

fn name_of(action: &Action) -> &'static str {
    match action {
        Action::Retry => "retry",
        Action::Skip => "skip",
        Action::Force { completed: true, .. } => "force as completed",
        Action::Force { completed: false, .. } => "force as compensated",
    }
}

impl<S: Store> fmt::Debug for Operator<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operator").field("key", &self.key).field("revision", &self.revision).finish_non_exhaustive()
    }
}
