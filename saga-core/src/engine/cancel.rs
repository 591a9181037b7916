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
    Advance, Applied, Changes, Condition, DefinitionId, HistoryEntry, HistoryKind, Miss, Postponed, SagaRow,
    SagaWithSteps, Status, Store, Timestamp, WorkKind, WorkRef, WorkStatus,
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

/// Cancels sagas, and sends them signals. It needs no runtime, only a store that can be written, and the definitions: the compensations run where
/// a runtime works on the store.
pub struct SagaDesk<S: Store> {
    desk: Desk<S>,
    definitions: BTreeMap<DefinitionId, Arc<Definition<S>>>,
}

/// Why a saga is to turn round.
#[derive(Clone, Copy)]
enum Wish<'a> {
    /// Somebody wants it, for this reason.
    Cancel(&'a str),
    /// Its deadline passed, which this row says.
    Overdue(WorkRef),
}

/// Why nothing was done to a saga.
pub(super) enum Missed {
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

    /// Adds a definition, whose sagas can be worked on then.
    #[must_use]
    pub fn saga<I>(mut self, saga: &Saga<S, I>) -> Self {
        let definition = saga.definition();
        self.definitions.insert(definition.id.clone(), Arc::clone(definition));
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
            match self.try_to_turn(&key, None, Wish::Cancel(reason)).await {
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
            match self.try_to_turn(key, Some(revision), Wish::Cancel(reason)).await {
                Ok(()) => return Ok(()),
                Err(Missed::Moved) => {}
                Err(Missed::Refused(refused, _)) => return Err(refusal(key, &refused)),
                Err(Missed::Error(error)) => return Err(error),
            }
        }
    }

    /// Calls off a saga whose deadline passed, as the claimed row says. The row goes, also where the saga is done in time.
    pub(super) async fn end_overdue(&self, key: &Key, work: WorkRef) -> Result<(), RuntimeError> {
        loop {
            match self.try_to_turn(key, None, Wish::Overdue(work)).await {
                Ok(()) => return Ok(()),
                Err(Missed::Moved) => {
                    // Whoever moved it may have withdrawn the row, or somebody else has it.
                    if !self.has_row(key, work).await? {
                        return Ok(());
                    }
                }
                Err(Missed::Refused(..)) => {
                    let changes = Changes { finished: vec![(work, Condition::Held)], ..Changes::default() };
                    self.desk.store.record(vec![changes]).await?;
                    return Ok(());
                }
                Err(Missed::Error(error)) => return Err(error),
            }
        }
    }

    async fn has_row(&self, key: &Key, work: WorkRef) -> Result<bool, RuntimeError> {
        let stored = self.desk.store.saga_with_steps(&self.desk.tenant, key).await?;
        Ok(stored.is_some_and(|stored| stored.work.iter().any(|row| row.work == work)))
    }

    async fn try_to_turn(&self, key: &Key, seen: Option<u64>, wish: Wish<'_>) -> Result<(), Missed> {
        let of_key = |problem: String| RuntimeError::Refused { key: key.to_string(), problem };
        if matches!(wish, Wish::Cancel(reason) if reason.trim().is_empty()) {
            return Err(of_key("give a reason; it is kept with the action".to_owned()).into());
        }
        let stored = self.stored(key).await?;
        let SagaRow { status, version, .. } = stored.saga;
        if seen.is_some_and(|seen| seen != version) {
            return Err(RuntimeError::Moved { key: key.to_string(), status, version }.into());
        }
        let (changes, outcome) = self.changes(&stored, wish)?;
        let is_hurried = !changes.postponed.is_empty();
        match self.record(changes).await? {
            Ok(()) => {
                if is_hurried {
                    self.desk.wake_workers();
                }
                self.desk.tell(stored.saga.id, outcome);
                Ok(())
            }
            Err(Miss::Saga(_) | Miss::Work(_)) => Err(Missed::Moved),
            Err(miss) => Err(of_key(format!("it was not cancelled: {miss:?}")).into()),
        }
    }

    pub(super) async fn stored(&self, key: &Key) -> Result<SagaWithSteps, RuntimeError> {
        let stored = self.desk.store.saga_with_steps(&self.desk.tenant, key).await?;
        stored.ok_or_else(|| RuntimeError::NoSaga(key.to_string()))
    }

    /// The saga's definition and its state.
    pub(super) fn read(&self, saga: &SagaRow) -> Result<(&Definition<S>, SagaState), RuntimeError> {
        let Some(definition) = self.definitions.get(&saga.definition) else {
            let (key, definition) = (saga.key.to_string(), saga.definition.to_string());
            return Err(RuntimeError::UnknownDefinition { key, definition });
        };
        if saga.digest != definition.digest {
            return Err(unreadable(saga, "its steps are others than when it was started"));
        }
        let state = SagaState::decode(&saga.state, definition.steps.len());
        Ok((definition, state.map_err(|problem| unreadable(saga, &problem))?))
    }

    pub(super) async fn record(&self, changes: Changes) -> Result<Applied, RuntimeError> {
        let applied = self.desk.store.record(vec![changes]).await?;
        // A store answers each.
        Ok(applied.into_iter().next().unwrap_or(Ok(())))
    }

    pub(super) async fn now(&self) -> Result<Timestamp, RuntimeError> {
        Ok(self.desk.store.now().await?)
    }

    pub(super) fn wake_workers(&self) {
        self.desk.wake_workers();
    }

    /// The setting of the runtime, where there is one.
    pub(super) fn payload_bytes_max(&self) -> Option<usize> {
        self.desk.payload_bytes_max()
    }

    /// The saga turns round. What waits to be tried again falls due now, to be given back; what nobody ever had is gone.
    fn changes(&self, stored: &SagaWithSteps, wish: Wish<'_>) -> Result<(Changes, Option<Outcome>), Missed> {
        let saga = &stored.saga;
        let (definition, mut state) = self.read(saga)?;
        if saga.status == Status::Stuck && state.stuck.is_none() {
            return Err(unreadable(saga, "it got stuck because it could not be read; have it tried again first").into());
        }
        let called_off = match wish {
            Wish::Cancel(reason) => Event::CalledOff { reason: Rejection::new(reason), has_begun: has_begun(stored) },
            Wish::Overdue(_) => Event::DeadlinePassed,
        };
        let within = state.deadline.map(|deadline| deadline.within).unwrap_or_default();
        let decision = machine::apply(&definition.shape, &mut state, called_off);
        let decision = decision.map_err(|refused| Missed::Refused(refused, saga.status))?;
        if (Decision { withdrawn: Vec::new(), ..decision.clone() }) != Decision::default() {
            // Something of a saga that goes forward is always under way, or needs a person.
            return Err(unreadable(saga, "nothing of it is under way").into());
        }
        let (expected, status) = (saga.version, state.status());
        let is_over = status.is_ended();
        let of_step = |work: &&WorkStatus| work.kind != WorkKind::Deadline;
        let whole = |work: &WorkStatus| (work.work, Condition::NotLate);
        let mut finished = Vec::new();
        if is_over {
            finished.extend(stored.work.iter().filter(of_step).map(whole));
        }
        let (kind, detail) = match wish {
            Wish::Cancel(reason) => (HistoryKind::Operator, format!("cancel: {reason}")),
            Wish::Overdue(work) => {
                finished.push((work, Condition::Held));
                (HistoryKind::Deadline, format!("its deadline passed, {within:?} after it was to begin"))
            }
        };
        let changes = Changes {
            saga: Some(Advance { id: saga.id, expected, status, state: state.encode() }),
            finished,
            withdrawn: decision.withdrawn.iter().map(|timer| timer.row(saga.id)).collect(),
            postponed: if is_over { Vec::new() } else { hurried(stored, definition) },
            history: vec![HistoryEntry { saga: saga.id, step: None, kind, attempt: 0, detail }],
            ..Changes::default()
        };
        Ok((changes, outcome_of(&definition.shape, &state)))
    }
}

/// Whether somebody may have had a command of the saga since it was started.
fn has_begun(stored: &SagaWithSteps) -> bool {
    let is_untouched = |work: &WorkStatus| {
        work.kind == WorkKind::Deadline
            || (work.work.epoch == 1 && work.owner.is_none() && work.attempts == 0 && !work.maybe)
    };
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

fn unreadable(saga: &SagaRow, problem: &str) -> RuntimeError {
    RuntimeError::Unreadable { key: saga.key.to_string(), problem: problem.to_owned() }
}

pub(super) fn refusal(key: &Key, refused: &Refused) -> RuntimeError {
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
