//! Starting sagas.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::engine::bulkhead::QueueSlot;
use crate::engine::context::{EngineContext, StartError, is_inside_step};
use crate::engine::decide::{Decider, StartOptions, note_row};
use crate::engine::instance::{NotInlined, PendingStarts, SagaInstance, WorkItem};
use crate::engine::lifecycle::TaskGuard;
use crate::engine::message::{first_difference, request_hash};
use crate::engine::outcome::{OutcomeSlot, Waiters};
use crate::engine::schedule::{InlineSteps, Scheduler};
use crate::engine::statistics::Counters;
use crate::engine::store_calls::{
    Batcher, LockConflict, LockRetry, RecordError, Request, StoreCalls, catch_panic, store_error,
};
use crate::key::{Key, Tenant};
use crate::log;
use crate::machine::{self, Effect};
use crate::saga::Definition;
use crate::store::{
    Lease, MemberId, NewSaga, RetryClass, SagaId, SagaRow, Started, Store, StoreErrorKind, WorkId, WorkRef,
};

/// How many calls that start sagas one commit carries at most.
pub(crate) const GROUP_MAX: usize = 128;

/// How many sagas one commit starts at most.
pub(crate) const COMMIT_MAX: usize = 1_000;

/// Starts that share commits.
pub(crate) struct Starts {
    calls: Batcher<Vec<StartCall>, Result<Vec<Started>, RecordError>>,
    apart: LockRetry,
}

type StartRequest = Request<Vec<StartCall>, Result<Vec<Started>, RecordError>>;

/// A start, with the slot of its first command.
#[derive(Debug)]
pub(crate) struct StartCall {
    pub(crate) saga: NewSaga,
    pub(crate) slot: Option<QueueSlot>,
    pub(crate) lease_until: Duration,
    pub(crate) under_way: TaskGuard,
}

/// What the answer to a start is made from: the saga that was asked for, and the slot of its outcome.
pub(crate) struct RequestedStart {
    id: SagaId,
    key: Key,
    input: Vec<u8>,
    hash: Vec<u8>,
    slot: Arc<OutcomeSlot>,
}

impl Starts {
    pub(crate) fn new<S: Store>(ctx: &EngineContext<S>) -> Self {
        Self { calls: Batcher::new(), apart: LockRetry::new(&ctx.lifecycle, &ctx.env) }
    }
}

/// A saga that was started, or was there already.
pub(crate) struct StartedSaga {
    pub(crate) id: SagaId,
    pub(crate) key: Key,
    /// The slot that gets its outcome.
    pub(crate) slot: Arc<OutcomeSlot>,
    /// The row of the saga, if it existed before.
    pub(crate) known: Option<Box<SagaRow>>,
}

/// Logs that a saga was started, once that is committed.
pub(crate) fn log_start(new: &NewSaga) {
    let (tenant, saga, definition) = (new.tenant.as_str(), &new.key, &new.definition);
    log::debug!(tenant, %saga, %definition, "saga started");
}

/// When the first command of a new saga is due.
pub(crate) fn begins_in(saga: &NewSaga) -> Duration {
    saga.commands.iter().map(|command| command.due_in).min().unwrap_or_default()
}

/// How many ids a new saga takes: its own, those of its first commands, and that of its deadline.
pub(crate) fn ids_of_start<S: Store>(definition: &Definition<S>) -> usize {
    1 + definition.width + usize::from(definition.deadline.is_some())
}

/// The same key with the same payload is the same saga; anything else is refused.
pub(crate) fn check_same<S: Store>(
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
        let has_fingerprint = request_hash(input) != hash;
        let path = match (has_fingerprint, row.is_tombstone()) {
            (true, _) => "the fingerprint".to_owned(),
            // A tombstone has no input to compare with.
            (false, true) => "the input".to_owned(),
            (false, false) => first_difference(&row.input, input),
        };
        return Err(StartError::PayloadMismatch { key: key.to_string(), path });
    }
    Ok(())
}

/// Starts sagas: in commits of their own, or in the transaction of their first steps.
pub(crate) struct Starter<S: Store> {
    pub(crate) ctx: Arc<EngineContext<S>>,
    pub(crate) store_calls: Arc<StoreCalls<S>>,
    pub(crate) scheduler: Arc<Scheduler<S>>,
    pub(crate) decider: Arc<Decider<S>>,
    pub(crate) waiters: Arc<Waiters>,
    pub(crate) inline_steps: Arc<InlineSteps<S>>,
    pub(crate) statistics: Arc<Counters>,
    pub(crate) pending_starts: Arc<PendingStarts>,
    starts: Starts,
}

impl<S: Store> Starter<S> {
    pub(crate) fn new(
        scheduler: Arc<Scheduler<S>>,
        decider: Arc<Decider<S>>,
        waiters: Arc<Waiters>,
        inline_steps: Arc<InlineSteps<S>>,
        statistics: Arc<Counters>,
    ) -> Self {
        let (ctx, store_calls) = (Arc::clone(&scheduler.ctx), Arc::clone(&scheduler.store_calls));
        let (pending_starts, starts) = (Arc::default(), Starts::new(&ctx));
        Self { ctx, store_calls, scheduler, decider, waiters, inline_steps, statistics, pending_starts, starts }
    }
}

impl<S: Store> Starter<S> {
    /// Answers the callers whose sagas were not started when the runtime stopped.
    pub(crate) fn close(&self) {
        self.starts.calls.close();
    }

    pub(crate) async fn start_saga(
        self: &Arc<Self>,
        definition: &Arc<Definition<S>>,
        tenant: &Tenant,
        key: Key,
        input: Vec<u8>,
        options: StartOptions,
    ) -> Result<StartedSaga, StartError> {
        if is_inside_step() {
            return Err(StartError::InsideStep);
        }
        let under_way = self.ctx.lifecycle.enter();
        self.pending_starts.wait(tenant, &key).await;
        let Some(owner) = self.scheduler.membership.member() else { return Err(StartError::ShuttingDown) };
        let mut saga = self.new_saga(definition, tenant, key, input, options)?;
        let count = u32::try_from(1 + saga.commands.len()).unwrap_or(u32::MAX);
        let mut ids = self.store_calls.ids.take(&*self.ctx.store, count).await?;
        let mut slot = self.assign_ids(definition, &mut saga, &mut ids, owner);
        // The saga may end before its start returns, so its waiter is registered first.
        let (id, key, outcome_slot) = (saga.id, saga.key.clone(), self.waiters.slot(saga.id));
        let lease_until = self.ctx.env.now().saturating_add(self.ctx.settings.lease_ttl);
        if let Some(first) = self.first_command(&saga, slot.take(), lease_until) {
            if saga.commands.len() == 1 && self.starts_with_step(&first) {
                let new = Arc::new(saga);
                match self.start_with_step(first, &new, self.ctx.lifecycle.enter()).await {
                    Ok(Ok(())) => return Ok(StartedSaga { id, key, slot: outcome_slot, known: None }),
                    Ok(Err(error)) => return Err(StartError::Store(store_error(&error))),
                    // Another call for the same key was quicker, or the store failed. A start by its own commit tells.
                    Err(NotInlined) => self.pending_starts.wait(tenant, &key).await,
                }
                saga = Arc::unwrap_or_clone(new);
                slot = self.slot_of_first(definition, &saga);
            } else {
                slot = first.slot;
            }
        }
        for command in &mut saga.commands {
            command.lease = command.lease.filter(|_| slot.is_some());
        }
        let wanted = self.wanted(&saga);
        let call = StartCall { saga, slot, lease_until, under_way };
        match self.start_together(vec![call]).await.ok_or(StartError::ShuttingDown)? {
            Ok(started) => {
                let started = started.into_iter().next().ok_or(StartError::ShuttingDown)?;
                self.start_answer(definition, wanted, started)
            }
            Err(error) => Err(StartError::Store(store_error(&error))),
        }
    }

    /// Assigns ids to a new saga and its commands. If a slot is free, this process also leases the first command. A saga that
    /// begins later is left to the process that claims it.
    pub(crate) fn assign_ids(
        &self,
        definition: &Definition<S>,
        saga: &mut NewSaga,
        ids: &mut Range<i64>,
        owner: MemberId,
    ) -> Option<QueueSlot> {
        let begins_now = saga.commands.first().is_none_or(|first| first.due_in.is_zero());
        let slot = begins_now.then(|| self.slot_of_first(definition, saga)).flatten();
        saga.id = SagaId(ids.next().unwrap_or_default());
        for (number, command) in saga.commands.iter_mut().enumerate() {
            command.id = WorkId(ids.next().unwrap_or_default());
            command.saga = saga.id;
            // The slot is for the first command; any process may claim the others.
            let is_ours = number == 0 && slot.is_some();
            command.lease = is_ours.then_some(Lease { owner, ttl: self.ctx.settings.lease_ttl });
        }
        note_row(definition, saga);
        slot
    }

    /// A slot for the first command of a new saga, if one is free.
    fn slot_of_first(&self, definition: &Definition<S>, saga: &NewSaga) -> Option<QueueSlot> {
        let first = saga.commands.first().and_then(|first| definition.shape.position(first.step.step()))?;
        let shape = &definition.shape.steps[first];
        // A list is fanned out first, by the engine.
        let effect = if shape.each.is_some() { Effect::Own } else { shape.effect };
        self.scheduler.slot_to_start_now(self.scheduler.bulkheads.limits.concurrency_key(
            &definition.id,
            first,
            false,
            effect,
        ))
    }

    /// The rows of a new saga, still without ids and leases.
    pub(crate) fn new_saga(
        &self,
        definition: &Arc<Definition<S>>,
        tenant: &Tenant,
        key: Key,
        input: Vec<u8>,
        options: StartOptions,
    ) -> Result<NewSaga, StartError> {
        let known = self.ctx.definitions.get(&definition.id);
        if known.is_none_or(|known| known.digest != definition.digest) {
            return Err(StartError::NotRegistered(definition.id.to_string()));
        }
        self.decider.new_saga(definition, tenant, key, input, options)
    }

    /// Registers the waiter of a new saga before the start: the saga may end before its start returns.
    pub(crate) fn wanted(&self, saga: &NewSaga) -> RequestedStart {
        RequestedStart {
            id: saga.id,
            key: saga.key.clone(),
            input: saga.input.clone(),
            hash: saga.input_hash.clone(),
            slot: self.waiters.slot(saga.id),
        }
    }

    /// Starts sagas in one commit with others that are started now; `None` if the runtime has ended.
    pub(crate) async fn start_together(&self, calls: Vec<StartCall>) -> Option<Result<Vec<Started>, RecordError>> {
        let answer = self.starts.calls.call(calls).await;
        let unanswered = || {
            let detail = "the task that starts sagas panicked; start the saga again, it may be there";
            (!self.ctx.lifecycle.has_stopped()).then(|| Err(RecordError::unanswered("start", detail)))
        };
        answer.or_else(unanswered)
    }

    /// What `start` returns.
    pub(crate) fn start_answer(
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

    pub(crate) async fn serve_starts(self: Arc<Self>) {
        self.starts.calls.serve(&self.ctx.lifecycle.stopped, GROUP_MAX, |group| self.start_groups(group)).await;
    }

    /// Starts sagas whose requests arrived together, in as few commits as possible.
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
        apart.make(self, group, |this, group| async move { this.commit_starts(group).await }).await;
    }

    /// Starts sagas in one commit. After a lock conflict it returns them: none of them was started.
    async fn commit_starts(self: Arc<Self>, group: Vec<StartRequest>) -> Result<(), LockConflict<StartRequest>> {
        let sagas = group.iter().flat_map(|request| &request.call).map(|call| call.saga.clone()).collect();
        match catch_panic("start", self.ctx.store.start(sagas)).await {
            Ok(started) => {
                let mut started = started.into_iter();
                for request in group {
                    let answers: Vec<Started> = started.by_ref().take(request.call.len()).collect();
                    let are_new: Vec<bool> = answers.iter().map(|answer| matches!(answer, Started::New)).collect();
                    for (call, is_new) in request.answer(Ok(answers)).into_iter().zip(are_new) {
                        self.statistics.count_start(is_new);
                        if is_new {
                            log_start(&call.saga);
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
                    in_doubt.extend(commands.map(|command| WorkRef::inserted(command.id)));
                }
                if error.class() == RetryClass::Unknown {
                    self.release_in_doubt(in_doubt);
                }
            }
        }
        Ok(())
    }

    /// If a start was committed after all, this process holds leases that it does not use. Later starts do not wait until the
    /// store takes them back: they are told that it fails.
    fn release_in_doubt(self: &Arc<Self>, work: Vec<WorkRef>) {
        let (this, under_way) = (Arc::clone(self), self.ctx.lifecycle.enter());
        self.ctx.lifecycle.spawn(
            "release",
            Box::pin(async move {
                this.scheduler.release(&work).await;
                drop(under_way);
            }),
        );
    }

    /// After the commit of a start: gives its first command to the workers.
    pub(crate) fn begin(self: &Arc<Self>, call: StartCall) {
        let _until_it_is_queued = call.under_way;
        if call.slot.is_none() || call.saga.commands.len() > 1 {
            self.scheduler.announce_unclaimed(begins_in(&call.saga));
        }
        if call.slot.is_none() {
            return;
        }
        if let Some(first) = self.first_command(&call.saga, call.slot, call.lease_until) {
            self.scheduler.enqueue(first);
        }
    }

    /// The first command of a new saga.
    fn first_command(&self, new: &NewSaga, slot: Option<QueueSlot>, lease_until: Duration) -> Option<WorkItem<S>> {
        let definition = self.ctx.definitions.get(&new.definition)?;
        let first = new.commands.first()?;
        let step = definition.shape.position(first.step.step())?;
        let mut saga = SagaInstance::of_new(new, definition, definition.read_fresh(&new.state)?);
        if let Some(payload) = &first.payload {
            saga.inputs.set(step, payload.clone().into());
        }
        let owner = first.lease.map_or_else(|| self.scheduler.membership.member_id(), |lease| lease.owner);
        Some(WorkItem::new(saga, first.id, machine::Command::Do { step }, owner, lease_until, slot))
    }
}
