//! Gives leased commands to the workers of this process, and unleased work back to the store.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::dispatch::{Dispatch, DispatchPort};
use crate::engine::bulkhead::{
    Admission, Bulkheads, ConcurrencyKey, ConcurrencyPermit, FairQueue, Pool, PoolSizes, QueueSlot,
};
use crate::engine::context::EngineContext;
use crate::engine::instance::{NextSlot, SagaInstance, WorkItem, refs};
use crate::engine::membership::Membership;
use crate::engine::queue::{PollTimer, Queue};
use crate::engine::store_calls::StoreCalls;
use crate::log;
use crate::machine::{self, Effect};
use crate::store::{Hint, Store, WorkRef};

/// The slot that the next command of a saga gets.
pub(crate) enum Placement {
    /// That of the command before it.
    Inherited,
    /// Another one, with a permit if it is for a call.
    Acquired(QueueSlot),
    /// No slot is free.
    NoSlot,
    /// It is a call and would wait here for a permit, so the work row stays unleased: another process may begin it now.
    NoPermit,
}

/// Commands that this process has leased and that wait for a worker.
pub(crate) struct Scheduler<S: Store> {
    pub(crate) ctx: Arc<EngineContext<S>>,
    pub(crate) store_calls: Arc<StoreCalls<S>>,
    pub(crate) membership: Arc<Membership<S>>,
    /// Commands of transactional steps.
    pub(crate) transactions: Queue<WorkItem<S>>,
    /// Commands of external steps, and of steps that the engine runs itself.
    pub(crate) calls: Queue<WorkItem<S>>,
    /// Commands whose owner died.
    pub(crate) recovered: Queue<WorkItem<S>>,
    /// Commands whose owner died while it recovered them: they run one at a time.
    pub(crate) recovered_again: Queue<WorkItem<S>>,
    pub(crate) bulkheads: Arc<Bulkheads>,
    pub(crate) poll_timer: Arc<PollTimer>,
    dispatch: DispatchPort<S>,
}

impl<S: Store> Scheduler<S> {
    pub(crate) fn new(
        ctx: Arc<EngineContext<S>>,
        store_calls: Arc<StoreCalls<S>>,
        membership: Arc<Membership<S>>,
        poll_timer: Arc<PollTimer>,
    ) -> Self {
        let (transactions, calls) = (Queue::new(), Queue::new());
        let (recovered, recovered_again) = (Queue::new(), Queue::new());
        let settings = &ctx.settings;
        let sizes = PoolSizes {
            slots: settings.sagas_in_memory_max,
            transactions: settings.transactions_max,
            calls: settings.external_calls_max,
            batch_max: ctx.batch_max(),
        };
        let queues = [transactions.filled(), calls.filled()];
        let outside = [recovered.filled(), recovered_again.filled()];
        let env = Arc::clone(&ctx.env);
        let bulkheads = Bulkheads::new(ctx.definitions.values(), sizes, env, queues, outside);
        let dispatch = DispatchPort::new();
        Self {
            ctx,
            store_calls,
            membership,
            transactions,
            calls,
            recovered,
            recovered_again,
            bulkheads,
            poll_timer,
            dispatch,
        }
    }
}

impl<S: Store> Scheduler<S> {
    /// Sets the component that runs commands which need no worker.
    pub(crate) fn dispatch_to(&self, executors: &Arc<dyn Dispatch<S>>) {
        // It is set once, when the runtime is built.
        _ = self.dispatch.set(Arc::downgrade(executors));
    }

    fn start_call(self: &Arc<Self>, item: WorkItem<S>) {
        match self.dispatch.get().and_then(Weak::upgrade) {
            Some(executors) => executors.start_call(item),
            None => self.return_refused(Some(item)),
        }
    }

    fn resend(self: &Arc<Self>, item: WorkItem<S>) {
        match self.dispatch.get().and_then(Weak::upgrade) {
            Some(executors) => executors.resend(item),
            None => self.return_refused(Some(item)),
        }
    }

    /// Which limits the command counts against.
    pub(crate) fn concurrency_key(&self, saga: &SagaInstance<S>, order: machine::Command) -> ConcurrencyKey {
        let (step, effect) = (saga.state.base(order.step()), saga.definition.effect_of(&saga.state, order));
        self.bulkheads.limits.concurrency_key(&saga.definition.id, step, order.is_undo(), effect)
    }

    /// Takes the first command that `admit` admits, unless one was taken already.
    pub(crate) fn take_first(
        &self,
        queue: &mut FairQueue<WorkItem<S>>,
        admitted: &mut Vec<WorkItem<S>>,
        admit: impl Fn(ConcurrencyKey) -> Admission,
    ) {
        let mut at = 0;
        while admitted.is_empty()
            && let Some(command) = queue.get(at)
        {
            match admit(self.concurrency_key(&command.saga, command.command)) {
                Admission::Runs(held) => admitted.extend(take_with_permit(queue, at, held)),
                Admission::Waits => at += 1,
            }
        }
    }

    /// Releases leased rows, and tries again until the runtime stops. A row that is not released waits for the end of its lease.
    pub(crate) async fn release(&self, rows: &[WorkRef]) {
        if rows.is_empty() {
            return;
        }
        if self.store_calls.retry_store_to_the_end("release_work", || self.ctx.store.release_work(rows)).await.is_some()
        {
            self.announce_unclaimed(Duration::ZERO);
        }
    }

    /// Releases commands that wait in this process.
    pub(crate) async fn release_all(&self, commands: Vec<WorkItem<S>>) {
        self.release(&refs(&commands)).await;
    }

    /// The slot of the next command. A call gets one only together with a permit, and begins at once.
    pub(crate) fn next_slot(&self, saga: &SagaInstance<S>, order: machine::Command, before: NextSlot) -> Placement {
        let key = self.concurrency_key(saga, order);
        let is_call = key.pool == Pool::Calls;
        if let NextSlot::Of { key: before, has_permit } = before
            && before == key
            && !key.has_step_limit()
            && (has_permit || !is_call)
        {
            return Placement::Inherited;
        }
        let Some(mut slot) = self.bulkheads.try_acquire_slot(key) else { return Placement::NoSlot };
        if is_call {
            // Calls that wait already come first.
            let permit = if self.calls.has_waiting(key.flow()) { None } else { self.bulkheads.try_acquire_permit(key) };
            if permit.is_none() {
                return Placement::NoPermit;
            }
            slot.set_permit(permit);
        }
        Placement::Acquired(slot)
    }

    /// Gives a leased command to the workers of this process.
    pub(crate) fn enqueue(self: &Arc<Self>, mut command: WorkItem<S>) {
        if command.effect() != Effect::External {
            // The slot may hold the permit of the command before this one.
            drop(command.slot.as_mut().and_then(QueueSlot::take_permit));
        }
        let flow = self.concurrency_key(&command.saga, command.command).flow();
        let refused = match command.effect() {
            Effect::Transactional => self.transactions.push(flow, command),
            Effect::External if has_permit(&command) && !self.ctx.lifecycle.is_stopping() => {
                return self.start_call(command);
            }
            Effect::External | Effect::Own | Effect::Signal => self.calls.push(flow, command),
            Effect::Remote { .. } => return self.resend(command),
        };
        self.return_refused(refused);
    }

    /// Gives a claimed command to the workers of this process.
    pub(crate) fn enqueue_claimed(self: &Arc<Self>, command: WorkItem<S>) {
        let flow = self.concurrency_key(&command.saga, command.command).flow();
        let refused = match command.effect() {
            Effect::Remote { .. } => return self.resend(command),
            _ if command.recovered => return self.recover(command),
            Effect::Transactional => self.transactions.push_claimed(flow, command),
            Effect::External | Effect::Own | Effect::Signal => self.calls.push_claimed(flow, command),
        };
        self.return_refused(refused);
    }

    /// Releases a command that a closed queue refused: the runtime is shutting down, and another process may run it.
    fn return_refused(self: &Arc<Self>, refused: Option<WorkItem<S>>) {
        let Some(command) = refused else { return };
        let (this, under_way) = (Arc::clone(self), self.ctx.lifecycle.enter());
        self.ctx.lifecycle.spawn(
            "release",
            Box::pin(async move {
                this.release(&[command.work]).await;
                drop(under_way);
            }),
        );
    }

    /// A commit of this process left unclaimed work, due after this time. Any process with a free slot may claim it.
    pub(crate) fn announce_unclaimed(&self, due_in: Duration) {
        self.announce_work(due_in);
        // Later work is found by the poll at its due time.
        if due_in.is_zero() {
            self.ctx.store.hint(Hint::Work);
        }
    }

    /// Announces that the store has unclaimed work, due after this time.
    pub(crate) fn announce_work(&self, due_in: Duration) {
        let now = self.ctx.env.now();
        if due_in.is_zero() {
            self.poll_timer.announce(now);
        } else {
            self.poll_timer.announce_later(now.saturating_add(due_in));
        }
    }

    /// The slot of a claimed command. The claim asked only for work that has room.
    pub(crate) fn slot_of_claimed(&self, command: &WorkItem<S>) -> QueueSlot {
        self.bulkheads.acquire_slot(self.concurrency_key(&command.saga, command.command))
    }

    /// A slot for a command that begins now, if one is free; for a call only together with a permit.
    pub(crate) fn slot_to_start_now(&self, key: ConcurrencyKey) -> Option<QueueSlot> {
        let mut slot = self.bulkheads.try_acquire_slot(key)?;
        if key.pool == Pool::Calls {
            if self.calls.has_waiting(key.flow()) {
                return None;
            }
            slot.set_permit(Some(self.bulkheads.try_acquire_permit(key)?));
        }
        Some(slot)
    }

    /// Gives a command whose owner died to the recovery workers. A command whose owner died again during recovery runs alone:
    /// if it ends this process too, no other command is counted for that.
    fn recover(self: &Arc<Self>, mut command: WorkItem<S>) {
        // Recovery workers need no permit of the pool.
        if let Some(slot) = &mut command.slot {
            slot.leave_pool();
        }
        let (tenant, saga, step) = (command.saga.tenant.as_str(), &command.saga.key, command.step_id());
        log::info!(tenant, %saga, %step, attempt = command.attempt_number(), "step taken over");
        let has_vanished_again = command.attempts > 0 && command.retrying_for.is_zero();
        let queue = if has_vanished_again { &self.recovered_again } else { &self.recovered };
        let flow = self.concurrency_key(&command.saga, command.command).flow();
        let refused = queue.push_claimed(flow, command);
        self.return_refused(refused);
    }
}

/// Takes the command out of its queue, with the permit to run in its slot.
pub(crate) fn take_with_permit<S: Store>(
    queue: &mut FairQueue<WorkItem<S>>,
    index: usize,
    permit: Option<ConcurrencyPermit>,
) -> Option<WorkItem<S>> {
    let mut command = queue.remove(index)?;
    if let Some(slot) = &mut command.slot {
        slot.set_permit(permit);
    }
    Some(command)
}

fn has_permit<S: Store>(command: &WorkItem<S>) -> bool {
    command.slot.as_ref().is_some_and(QueueSlot::has_permit)
}
