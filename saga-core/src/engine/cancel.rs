//! Calling sagas off from outside.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::desk::Desk;
use super::error::RuntimeError;
use super::guard::outside_step;
use super::outcome::{Outcome, outcome_of};
use super::shared::Shared;
use crate::key::{Key, Tenant};
use crate::machine::{self, Decision, Effect, Event, Refused, SagaState};
use crate::saga::{Definition, Saga};
use crate::step::Rejection;
use crate::store::{
    Advance, Changes, Condition, DefinitionId, HistoryEntry, HistoryKind, Miss, Postponed, SagaRow, SagaWithSteps,
    Status, Store, WorkKind, WorkStatus,
};

/// What became of the wish to cancel a saga.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancellation {
    /// The saga turned round by this call.
    Begun,
    /// It compensates already, for whatever reason, and nothing was changed.
    UnderWay,
    /// It has ended already, and nothing was changed.
    Ended(Status),
}

/// Cancels sagas. It needs no runtime, only a store that can be written, and the definitions: the compensations run where
/// a runtime works on the store.
pub struct SagaDesk<S: Store> {
    desk: Desk<S>,
    definitions: BTreeMap<DefinitionId, Arc<Definition<S>>>,
}

/// Why a saga was not cancelled.
enum Missed {
    /// It moved, or a command of it did: it is to be looked at again.
    Moved,
    /// The machine refuses.
    Refused(Refused, Status),
    /// It cannot be.
    Error(RuntimeError),
}

impl<S: Store> SagaDesk<S> {
    /// The desk of the default tenant's sagas in this store.
    pub fn new(store: impl Into<Arc<S>>) -> Self {
        Self { desk: Desk::new(store.into()), definitions: BTreeMap::new() }
    }

    pub(super) fn of(shared: &Arc<Shared<S>>, tenant: &Tenant) -> Self {
        Self { desk: Desk::of(shared, tenant), definitions: shared.definitions.clone() }
    }

    /// Adds a definition, whose sagas can be cancelled then.
    #[must_use]
    pub fn saga<I>(mut self, saga: &Saga<S, I>) -> Self {
        let definition = saga.definition();
        for definition in definition.children().chain([definition]) {
            self.definitions.insert(definition.id.clone(), Arc::clone(definition));
        }
        self
    }

    /// Works on the sagas of this tenant.
    #[must_use]
    pub fn tenant(mut self, tenant: Tenant) -> Self {
        self.desk.tenant = tenant;
        self
    }

    /// Cancels a saga, as [`Runtime::cancel`](super::Runtime::cancel) does.
    ///
    /// # Errors
    /// Those of [`Runtime::cancel`](super::Runtime::cancel).
    ///
    /// # Cancel safety
    /// When dropped, the saga was cancelled or not; the same call again says which.
    pub async fn cancel(&self, key: impl AsRef<str>, reason: &str) -> Result<Cancellation, RuntimeError> {
        outside_step()?;
        let key = Key::from_stored(key.as_ref())?;
        loop {
            match self.try_to_cancel(&key, None, reason).await {
                Ok(()) => return Ok(Cancellation::Begun),
                Err(Missed::Moved) => {}
                Err(Missed::Refused(Refused::TurnedRound, _)) => return Ok(Cancellation::UnderWay),
                Err(Missed::Refused(Refused::Ended, status)) => return Ok(Cancellation::Ended(status)),
                Err(Missed::Refused(refused, _)) => return Err(refusal(&key, &refused)),
                Err(Missed::Error(error)) => return Err(error),
            }
        }
    }

    /// Cancels a saga that still stands as somebody saw it.
    pub(super) async fn cancel_seen(&self, key: &Key, revision: u64, reason: &str) -> Result<(), RuntimeError> {
        outside_step()?;
        loop {
            match self.try_to_cancel(key, Some(revision), reason).await {
                Ok(()) => return Ok(()),
                Err(Missed::Moved) => {}
                Err(Missed::Refused(refused, _)) => return Err(refusal(key, &refused)),
                Err(Missed::Error(error)) => return Err(error),
            }
        }
    }

    async fn try_to_cancel(&self, key: &Key, seen: Option<u64>, reason: &str) -> Result<(), Missed> {
        let of_key = |problem: String| RuntimeError::Refused { key: key.to_string(), problem };
        if reason.trim().is_empty() {
            return Err(of_key("give a reason; it is kept with the action".to_owned()).into());
        }
        let stored = self.desk.store.saga_with_steps(&self.desk.tenant, key).await.map_err(RuntimeError::from)?;
        let stored = stored.ok_or_else(|| RuntimeError::NoSaga(key.to_string()))?;
        let SagaRow { status, version, .. } = stored.saga;
        if seen.is_some_and(|seen| seen != version) {
            return Err(RuntimeError::Moved { key: key.to_string(), status, version }.into());
        }
        let (changes, outcome) = self.changes(&stored, reason)?;
        let is_hurried = !changes.postponed.is_empty();
        let applied = self.desk.store.record(vec![changes]).await.map_err(RuntimeError::from)?;
        match applied.into_iter().next() {
            Some(Ok(())) => {
                if is_hurried {
                    self.desk.wake_workers();
                }
                self.desk.tell(stored.saga.id, outcome);
                Ok(())
            }
            Some(Err(Miss::Saga(_) | Miss::Work(_))) => Err(Missed::Moved),
            miss => Err(of_key(format!("it was not cancelled: {miss:?}")).into()),
        }
    }

    /// The saga turns round. What waits to be tried again falls due now, to be given back; what nobody ever had is gone.
    fn changes(&self, stored: &SagaWithSteps, reason: &str) -> Result<(Changes, Option<Outcome>), Missed> {
        let saga = &stored.saga;
        let unreadable =
            |problem: &str| RuntimeError::Unreadable { key: saga.key.to_string(), problem: problem.to_owned() };
        let Some(definition) = self.definitions.get(&saga.definition) else {
            let (key, definition) = (saga.key.to_string(), saga.definition.to_string());
            return Err(RuntimeError::UnknownDefinition { key, definition }.into());
        };
        if saga.digest != definition.digest {
            return Err(unreadable("its steps are others than when it was started").into());
        }
        let mut state =
            SagaState::decode(&saga.state, definition.steps.len()).map_err(|problem| unreadable(&problem))?;
        if saga.status == Status::Stuck && state.stuck.is_none() {
            return Err(unreadable("it got stuck because it could not be read; have it tried again first").into());
        }
        let called_off = Event::CalledOff { reason: Rejection::new(reason), has_begun: has_begun(stored) };
        let decision = machine::apply(&definition.shape, &mut state, called_off);
        let decision = decision.map_err(|refused| Missed::Refused(refused, saga.status))?;
        if decision != Decision::default() {
            // Something of a saga that goes forward is always under way, or needs a person.
            return Err(unreadable("nothing of it is under way").into());
        }
        let (expected, status) = (saga.version, state.status());
        let is_over = status.is_ended();
        let whole = |work: &WorkStatus| (work.work, Condition::NotLate);
        let changes = Changes {
            saga: Some(Advance { id: saga.id, expected, status, state: state.encode() }),
            finished: if is_over { stored.work.iter().map(whole).collect() } else { Vec::new() },
            postponed: if is_over { Vec::new() } else { hurried(stored, definition) },
            history: vec![HistoryEntry {
                saga: saga.id,
                step: None,
                kind: HistoryKind::Operator,
                attempt: 0,
                detail: format!("cancel: {reason}"),
            }],
            ..Changes::default()
        };
        Ok((changes, outcome_of(&definition.shape, &state)))
    }
}

/// Whether somebody may have had a command of the saga since it was started.
fn has_begun(stored: &SagaWithSteps) -> bool {
    let is_untouched =
        |work: &WorkStatus| work.work.epoch == 1 && work.owner.is_none() && work.attempts == 0 && !work.maybe;
    stored.saga.version > 1 || stored.work.is_empty() || !stored.work.iter().all(is_untouched)
}

/// Commands that nobody has, and that may be due much later. What was sent to another service waits for its answer.
fn hurried<S: Store>(stored: &SagaWithSteps, definition: &Definition<S>) -> Vec<Postponed> {
    let is_remote = |name: &str| {
        let step = definition.shape.position(name);
        step.is_none_or(|step| matches!(definition.shape.steps[step].effect, Effect::Remote { .. }))
    };
    let waits = stored.work.iter().filter(|work| work.owner.is_none() && work.kind == WorkKind::Do);
    waits
        .filter(|work| !is_remote(work.step.step()))
        .map(|work| Postponed {
            work: work.work,
            due_in: Duration::ZERO,
            attempts: work.attempts,
            maybe: work.maybe,
            error: None,
        })
        .collect()
}

fn refusal(key: &Key, refused: &Refused) -> RuntimeError {
    RuntimeError::Refused { key: key.to_string(), problem: refused.to_string() }
}

impl From<RuntimeError> for Missed {
    fn from(error: RuntimeError) -> Self {
        Self::Error(error)
    }
}

impl<S: Store> fmt::Debug for SagaDesk<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SagaDesk").field("tenant", &self.desk.tenant).finish_non_exhaustive()
    }
}
