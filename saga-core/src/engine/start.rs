//! Starting sagas.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::apart::{LockConflict, LockRetry};
use super::asking::catch_panic;
use super::bulkhead::{ConcurrencyKey, Pool, QueueSlot};
use super::canonical::{first_difference, request_hash};
use super::command::WorkItem;
use super::deadline::{StartTiming, deadline_of, deadline_row};
use super::error::StartError;
use super::grouped::{Batcher, Request};
use super::guard::is_inside_step;
use super::idle::idle_for;
use super::in_flight::SagaInstance;
use super::recorder::RecordError;
use super::remote::{note_row, note_sent};
use super::shared::EngineContext;
use super::starting::NotInlined;
use super::tasks::TaskGuard;
use super::waiters::OutcomeSlot;
use crate::key::{Key, Tenant};
use crate::machine::{self, Effect, Timer};
use crate::saga::Definition;
use crate::step::Outputs;
use crate::store::{
    Lease, MemberId, NewSaga, NewWork, RetryClass, SagaId, SagaRow, Started, Store, StoreError, StoreErrorKind, WorkId,
    WorkKind, WorkRef,
};

/// How many calls that start sagas one commit carries at most.
const GROUP_MAX: usize = 128;
/// How many sagas one commit starts at most.
pub(super) const COMMIT_MAX: usize = 1_000;

/// Starts that are made together.
#[derive(Debug)]
pub(super) struct Starts {
    calls: Batcher<Vec<StartCall>, Result<Vec<Started>, RecordError>>,
    apart: LockRetry,
}

type StartRequest = Request<Vec<StartCall>, Result<Vec<Started>, RecordError>>;

/// A start, with the place that its first command will fill.
#[derive(Debug)]
pub(super) struct StartCall {
    pub(super) saga: NewSaga,
    pub(super) place: Option<QueueSlot>,
    pub(super) lease_until: Duration,
    pub(super) under_way: TaskGuard,
}

/// What is needed to judge and to wait for a saga that is about to be started.
pub(super) struct RequestedStart {
    id: SagaId,
    key: Key,
    input: Vec<u8>,
    hash: Vec<u8>,
    slot: Arc<OutcomeSlot>,
}

impl Starts {
    pub(super) fn new() -> Self {
        Self { calls: Batcher::new(), apart: LockRetry::new() }
    }
}

/// A saga that was started, or was there already.
pub(super) struct StartedSaga {
    pub(super) id: SagaId,
    pub(super) key: Key,
    /// Where its outcome arrives.
    pub(super) slot: Arc<OutcomeSlot>,
    /// The saga as it was found, if it was there.
    pub(super) known: Option<Box<SagaRow>>,
}

impl<S: Store> EngineContext<S> {
    pub(super) async fn start_saga(
        self: &Arc<Self>,
        definition: &Arc<Definition<S>>,
        tenant: &Tenant,
        key: Key,
        input: Vec<u8>,
        when: StartTiming,
    ) -> Result<StartedSaga, StartError> {
        if is_inside_step() {
            return Err(StartError::InsideStep);
        }
        let under_way = self.tasks.enter();
        self.pending_starts.wait(tenant, &key).await;
        let Some(owner) = self.member() else { return Err(StartError::ShuttingDown) };
        let mut saga = self.new_saga(definition, tenant, key, input, when)?;
        let count = u32::try_from(1 + saga.commands.len()).unwrap_or(u32::MAX);
        let mut ids = self.ids.take(&*self.store, count).await?;
        let mut place = self.assign_ids(definition, &mut saga, &mut ids, owner);
        // The saga may end before its start returns, so whoever waits for it is there first.
        let (id, key, slot) = (saga.id, saga.key.clone(), self.waiters.slot(saga.id));
        let lease_until = self.env.now().saturating_add(self.settings.lease_ttl);
        if let Some(first) = self.first_command(&saga, place.take(), lease_until) {
            if saga.commands.len() == 1 && self.starts_with_step(&first) {
                let new = Arc::new(saga);
                match self.start_with_step(first, &new, self.tasks.enter()).await {
                    Ok(Ok(())) => return Ok(StartedSaga { id, key, slot, known: None }),
                    Ok(Err(error)) => return Err(StartError::Store(store_error(&error))),
                    // Another call for the same key was quicker, or the store could not; the row says which.
                    Err(NotInlined) => self.pending_starts.wait(tenant, &key).await,
                }
                saga = Arc::unwrap_or_clone(new);
                place = self.place_of_first(definition, &saga);
            } else {
                place = first.slot;
            }
        }
        for command in &mut saga.commands {
            command.lease = command.lease.filter(|_| place.is_some());
        }
        let wanted = self.wanted(&saga);
        let call = StartCall { saga, place, lease_until, under_way };
        match self.start_together(vec![call]).await.ok_or(StartError::ShuttingDown)? {
            Ok(started) => {
                let started = started.into_iter().next().ok_or(StartError::ShuttingDown)?;
                self.start_answer(definition, wanted, started)
            }
            Err(error) => Err(StartError::Store(store_error(&error))),
        }
    }

    /// Gives a new saga and its commands their ids, and its first command a place, if there is one: then this process has
    /// it. A saga that begins later is there for whoever looks then.
    pub(super) fn assign_ids(
        &self,
        definition: &Definition<S>,
        saga: &mut NewSaga,
        ids: &mut Range<i64>,
        owner: MemberId,
    ) -> Option<QueueSlot> {
        let begins_now = saga.commands.first().is_none_or(|first| first.due_in.is_zero());
        let place = begins_now.then(|| self.place_of_first(definition, saga)).flatten();
        saga.id = SagaId(ids.next().unwrap_or_default());
        for (number, command) in saga.commands.iter_mut().enumerate() {
            command.id = WorkId(ids.next().unwrap_or_default());
            command.saga = saga.id;
            // One place is for one command; the others are there for anybody.
            let is_ours = number == 0 && place.is_some();
            command.lease = is_ours.then_some(Lease { owner, ttl: self.settings.lease_ttl });
        }
        note_row(definition, saga);
        place
    }

    /// A place for the first command of a new saga, if there is one.
    fn place_of_first(&self, definition: &Definition<S>, saga: &NewSaga) -> Option<QueueSlot> {
        let first = saga.commands.first().and_then(|first| definition.shape.position(first.step.step()))?;
        let shape = &definition.shape.steps[first];
        // A list is unfolded first.
        let effect = if shape.each.is_some() { Effect::Own } else { shape.effect };
        self.place_to_begin(self.bulkheads.seat(&definition.id, first, false, effect))
    }

    /// A place for a command that begins now, if there is one. One that is a call and would wait for a line is left for
    /// anybody who has one.
    pub(super) fn place_to_begin(&self, seat: ConcurrencyKey) -> Option<QueueSlot> {
        let mut place = self.bulkheads.try_place(seat)?;
        if seat.pool == Pool::Calls {
            if self.calls.has_waiting(seat.flow()) {
                return None;
            }
            place.set_line(Some(self.bulkheads.try_line(seat)?));
        }
        Some(place)
    }

    /// The saga may end before its start returns, so whoever waits for it is there first.
    pub(super) fn wanted(&self, saga: &NewSaga) -> RequestedStart {
        RequestedStart {
            id: saga.id,
            key: saga.key.clone(),
            input: saga.input.clone(),
            hash: saga.input_hash.clone(),
            slot: self.waiters.slot(saga.id),
        }
    }

    /// Starts sagas together with others that are started now. Nothing when the runtime has ended.
    pub(super) async fn start_together(&self, calls: Vec<StartCall>) -> Option<Result<Vec<Started>, RecordError>> {
        let answer = self.starts.calls.call(calls).await;
        let unanswered = || {
            let detail = "the task that starts sagas panicked; start the saga again, it may be there";
            (!self.has_stopped()).then(|| Err(RecordError::unanswered("start", detail)))
        };
        answer.or_else(unanswered)
    }

    /// What the caller is told.
    pub(super) fn start_answer(
        &self,
        definition: &Definition<S>,
        wanted: RequestedStart,
        started: Started,
    ) -> Result<StartedSaga, StartError> {
        match started {
            Started::New => Ok(StartedSaga { id: wanted.id, key: wanted.key, slot: wanted.slot, known: None }),
            Started::AlreadyExists(row) => {
                check_same(definition, &wanted.key, &wanted.input, &wanted.hash, &row)?;
                Ok(StartedSaga { id: row.id, key: wanted.key, slot: self.waiters.slot(row.id), known: Some(row) })
            }
        }
    }

    /// A saga that is not written yet: without ids and without a lease.
    pub(super) fn new_saga(
        &self,
        definition: &Arc<Definition<S>>,
        tenant: &Tenant,
        key: Key,
        input: Vec<u8>,
        when: StartTiming,
    ) -> Result<NewSaga, StartError> {
        let registered = self.definitions.get(&definition.id).is_some_and(|known| known.digest == definition.digest);
        if !registered {
            return Err(StartError::NotRegistered(definition.id.to_string()));
        }
        let (bytes, max) = (input.len(), self.settings.payload_bytes_max);
        if bytes > max {
            return Err(StartError::TooLarge { bytes, max });
        }
        if let Some(longest) = definition.step_key_bytes_max() {
            key.check_length_with(longest, tenant)?;
        }
        let (mut state, orders) = machine::start(&definition.shape);
        let mut commands = Vec::new();
        for order in orders {
            let machine::Command::Do { step } = order else { continue };
            let payload = match &definition.steps[step].input {
                None => None,
                Some(mapping) => {
                    let mapped = mapping.apply(&input, &Outputs::new());
                    Some(mapped.and_then(|mapped| self.check_length(mapped)).map_err(StartError::Input)?)
                }
            };
            note_sent(definition, &mut state, step, self.random_uuid(), payload.as_deref());
            let idle = idle_for(&definition.steps[step], payload.as_deref().unwrap_or(&input));
            if idle.is_some() {
                state.steps[step].timer = Some(Timer::started_with(commands.len()));
            }
            commands.push(NewWork {
                id: WorkId(0),
                saga: SagaId(0),
                tenant: tenant.clone(),
                key: key.clone(),
                kind: WorkKind::Do,
                step: definition.steps[step].doing.clone(),
                definition: definition.id.clone(),
                payload,
                due_in: when.delay.saturating_add(idle.unwrap_or_default()),
                lease: None,
                tried: None,
            });
        }
        let timer = Timer::started_with(commands.len());
        let deadline = deadline_of(definition, &mut state, when, timer);
        let row = commands.first().zip(deadline).map(|(first, deadline)| deadline_row(deadline, when.delay, first));
        commands.extend(row);
        Ok(NewSaga {
            id: SagaId(0),
            tenant: tenant.clone(),
            key,
            definition: definition.id.clone(),
            digest: definition.digest,
            input_hash: request_hash(&input),
            input,
            status: state.status(),
            state: state.encode(),
            commands,
        })
    }

    pub(super) async fn serve_starts(self: Arc<Self>) {
        self.starts.calls.serve(GROUP_MAX, |group| self.start_groups(group)).await;
    }

    /// Starts what came together, in as few commits as that takes.
    async fn start_groups(self: &Arc<Self>, requests: Vec<StartRequest>) {
        let mut group = Vec::new();
        let mut sagas = 0;
        for request in requests {
            if sagas > 0 && sagas + request.call.len() > COMMIT_MAX {
                self.start_group(std::mem::take(&mut group)).await;
                sagas = 0;
            }
            sagas += request.call.len();
            group.push(request);
        }
        if !group.is_empty() {
            self.start_group(group).await;
        }
    }

    async fn start_group(self: &Arc<Self>, group: Vec<StartRequest>) {
        let apart = self.starts.apart.clone();
        apart.make(self, group, |shared, group| async move { shared.start_at_once(group).await }).await;
    }

    /// Starts these in one commit. What waits for a lock comes back: nothing of it was started.
    async fn start_at_once(self: Arc<Self>, group: Vec<StartRequest>) -> Result<(), LockConflict<StartRequest>> {
        let sagas = group.iter().flat_map(|request| &request.call).map(|call| call.saga.clone()).collect();
        match catch_panic("start", self.store.start(sagas)).await {
            Ok(started) => {
                let mut started = started.into_iter();
                for request in group {
                    let answers: Vec<Started> = started.by_ref().take(request.call.len()).collect();
                    let are_new: Vec<bool> = answers.iter().map(|answer| matches!(answer, Started::New)).collect();
                    for (call, is_new) in request.answer(Ok(answers)).into_iter().zip(are_new) {
                        self.statistics.count_start(is_new);
                        if is_new {
                            self.begin(call);
                        }
                    }
                }
            }
            Err(error) if error.kind() == StoreErrorKind::Conflict => return Err(LockConflict { group, error }),
            Err(error) => {
                let mut in_doubt = Vec::new();
                for request in group {
                    let calls = request.answer(Err((&error).into()));
                    let commands = calls.iter().flat_map(|call| &call.saga.commands);
                    in_doubt.extend(commands.map(|command| WorkRef { id: command.id, epoch: 1 }));
                }
                if error.class() == RetryClass::Unknown {
                    // What was committed after all is leased to this process, which does not know it.
                    self.release(&in_doubt).await;
                }
            }
        }
        Ok(())
    }

    /// The start is committed: its first command goes straight to the workers.
    fn begin(self: &Arc<Self>, call: StartCall) {
        let _until_it_is_queued = call.under_way;
        if call.place.is_none() || call.saga.commands.len() > 1 {
            self.announce_unclaimed(begins_in(&call.saga));
        }
        if call.place.is_none() {
            return;
        }
        if let Some(first) = self.first_command(&call.saga, call.place, call.lease_until) {
            self.enqueue(first);
        }
    }

    /// The command that a new saga begins with.
    fn first_command(&self, new: &NewSaga, place: Option<QueueSlot>, lease_until: Duration) -> Option<WorkItem<S>> {
        let definition = self.definitions.get(&new.definition)?;
        let first = new.commands.first()?;
        let step = definition.shape.position(first.step.step())?;
        let mut saga = SagaInstance {
            id: new.id,
            tenant: new.tenant.clone(),
            key: new.key.clone(),
            definition: Arc::clone(definition),
            version: 1,
            state: definition.read_fresh(&new.state)?,
            input: Arc::from(&*new.input),
            outputs: Outputs::new(),
            inputs: Vec::new(),
            item_output: None,
        };
        if let Some(payload) = &first.payload {
            saga.set_input(step, payload.clone().into());
        }
        Some(WorkItem {
            saga,
            work: WorkRef { id: first.id, epoch: 1 },
            command: machine::Command::Do { step },
            attempts: 0,
            in_doubt: false,
            recovered: false,
            chains: true,
            retrying_for: Duration::ZERO,
            late_success: None,
            owner: first.lease.map_or_else(|| self.member_id(), |lease| lease.owner),
            is_claimed_only: false,
            lease_until,
            slot: place,
            inline_start: None,
            held_lease: None,
            reported: None,
        })
    }
}

/// After how long there is something to do for a new saga.
fn begins_in(saga: &NewSaga) -> Duration {
    saga.commands.iter().map(|command| command.due_in).min().unwrap_or_default()
}

/// How many ids a saga takes when it starts: its own, and those of the commands that it begins with, and of its deadline.
pub(super) fn ids_of_start<S: Store>(definition: &Definition<S>) -> usize {
    1 + definition.width + usize::from(definition.deadline.is_some())
}

/// The same key with the same payload is the same saga; anything else is refused.
pub(super) fn check_same<S: Store>(
    definition: &Definition<S>,
    key: &Key,
    input: &[u8],
    hash: &[u8],
    row: &SagaRow,
) -> Result<(), StartError> {
    if row.definition.name != definition.id.name {
        return Err(StartError::OtherSaga { key: key.to_string(), saga: row.definition.name.to_string() });
    }
    if row.input_hash != hash {
        return Err(StartError::PayloadMismatch { key: key.to_string(), path: first_difference(&row.input, input) });
    }
    Ok(())
}

pub(super) fn store_error(error: &RecordError) -> StoreError {
    StoreError::new(error.kind, error.operation, error.detail.clone()).with_class(error.class)
}
