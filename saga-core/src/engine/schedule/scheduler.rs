//! What happens when a commit is known to have happened.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::dispatch::{Dispatch, DispatchPort};
use crate::engine::bulkhead::{Admission, Bulkheads, ConcurrencyKey, FairLane, Pool, QueueSlot, Sizes};
use crate::engine::context::EngineContext;
use crate::engine::instance::{NextSlot, SagaInstance, WorkItem, refs};
use crate::engine::membership::Membership;
use crate::engine::queue::{PollTimer, Queue};
use crate::engine::store_calls::StoreCalls;
use crate::machine::{self, Effect};
use crate::store::{Hint, Store, WorkRef};

/// What place there is for a command.
pub(crate) enum Placement {
    Inherited,
    Free(QueueSlot),
    /// This process has as much of that kind as it can hold.
    NoRoom,
    /// It would wait here: it is left for anybody who can begin it.
    NoLine,
}

/// Commands that this process has leased and that wait for a worker.
pub(crate) struct Scheduler<S: Store> {
    pub(crate) ctx: Arc<EngineContext<S>>,
    pub(crate) store_calls: Arc<StoreCalls<S>>,
    pub(crate) membership: Arc<Membership<S>>,
    /// Commands whose handler runs in a transaction.
    pub(crate) transactions: Queue<WorkItem<S>>,
    /// Commands whose handler calls the outside world, and those that the engine does itself.
    pub(crate) calls: Queue<WorkItem<S>>,
    /// Commands that were taken over from a process that vanished.
    pub(crate) recovered: Queue<WorkItem<S>>,
    /// Those whose process vanished again while it recovered them: they run one at a time.
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
        let sizes = Sizes {
            places: settings.sagas_in_memory_max,
            transactions: settings.transactions_max,
            calls: settings.external_calls_max,
            batch_max: ctx.batch_max(),
        };
        let queues = [transactions.filled(), calls.filled()];
        let beside = [recovered.filled(), recovered_again.filled()];
        let env = Arc::clone(&ctx.env);
        let bulkheads = Bulkheads::new(ctx.definitions.values(), sizes, env, queues, beside);
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
    /// Sets what runs commands that need no worker.
    pub(crate) fn dispatch_to(&self, executors: &Arc<dyn Dispatch<S>>) {
        // A runtime is put together once.
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

    /// Where a command counts.
    pub(crate) fn seat_of(&self, saga: &SagaInstance<S>, order: machine::Command) -> ConcurrencyKey {
        let (machine::Command::Do { step } | machine::Command::Undo { step, .. }) = order;
        let is_undo = matches!(order, machine::Command::Undo { .. });
        self.bulkheads.seat(&saga.definition.id, saga.state.base(step), is_undo, saga.effect_of(order))
    }

    /// Takes the first command that may run now, unless one was admitted. `line_of` says whether it may, and with which line.
    pub(crate) fn take_first(
        &self,
        lane: &mut FairLane<WorkItem<S>>,
        admitted: &mut Vec<WorkItem<S>>,
        line_of: impl Fn(ConcurrencyKey) -> Admission,
    ) {
        let mut at = 0;
        while admitted.is_empty()
            && let Some(command) = lane.get(at)
        {
            match line_of(self.seat_of(&command.saga, command.command)) {
                Admission::Runs(held) => admitted.extend(lane.remove(at).map(|command| command.with_line(held))),
                Admission::Waits => at += 1,
            }
        }
    }

    /// Gives rows back, and tries as long as the runtime runs: what is not given back waits for the end of its lease.
    pub(crate) async fn release(&self, rows: &[WorkRef]) {
        if rows.is_empty() {
            return;
        }
        if self.store_calls.retry_store_to_the_end("release_work", || self.ctx.store.release_work(rows)).await.is_some()
        {
            self.announce_unclaimed(Duration::ZERO);
        }
    }

    /// Gives back what waited in a queue when it was closed.
    pub(crate) async fn release_all(&self, commands: Vec<WorkItem<S>>) {
        self.release(&refs(&commands)).await;
    }

    /// The place of the next command. A call has one only together with a line, on which it begins at once.
    pub(crate) fn next_slot(&self, saga: &SagaInstance<S>, order: machine::Command, before: NextSlot) -> Placement {
        let seat = self.seat_of(saga, order);
        let is_call = seat.pool == Pool::Calls;
        if let NextSlot::Of { seat: before, has_line } = before
            && before == seat
            && !seat.has_step_limit()
            && (has_line || !is_call)
        {
            return Placement::Inherited;
        }
        let Some(mut place) = self.bulkheads.try_place(seat) else { return Placement::NoRoom };
        if is_call {
            // Those that wait already come first.
            let line = if self.calls.has_waiting(seat.flow()) { None } else { self.bulkheads.try_line(seat) };
            if line.is_none() {
                return Placement::NoLine;
            }
            place.set_line(line);
        }
        Placement::Free(place)
    }

    /// Gives a leased command to the workers of this process.
    pub(crate) fn enqueue(self: &Arc<Self>, mut command: WorkItem<S>) {
        if !command.is_call() {
            // That of the command before it, in whose place it is.
            drop(command.take_line());
        }
        let flow = self.seat_of(&command.saga, command.command).flow();
        let refused = match command.effect() {
            Effect::Transactional => self.transactions.push(flow, command),
            Effect::External if command.has_line() && !self.ctx.lifecycle.is_stopping() => {
                return self.start_call(command);
            }
            Effect::External | Effect::Own | Effect::Signal => self.calls.push(flow, command),
            Effect::Remote { .. } => return self.resend(command),
        };
        self.return_refused(refused);
    }

    /// Gives a claimed command to the workers of this process.
    pub(crate) fn enqueue_claimed(self: &Arc<Self>, command: WorkItem<S>) {
        let flow = self.seat_of(&command.saga, command.command).flow();
        let refused = match command.effect() {
            Effect::Remote { .. } => return self.resend(command),
            _ if command.recovered => return self.recover(command),
            Effect::Transactional => self.transactions.push_claimed(flow, command),
            Effect::External | Effect::Own | Effect::Signal => self.calls.push_claimed(flow, command),
        };
        self.return_refused(refused);
    }

    /// A closed queue takes nothing: the runtime is shutting down, and the command is left to another process.
    fn return_refused(self: &Arc<Self>, refused: Option<WorkItem<S>>) {
        let Some(command) = refused else { return };
        let (this, under_way) = (Arc::clone(self), self.ctx.lifecycle.enter());
        self.ctx.lifecycle.spawn(
            "give back",
            Box::pin(async move {
                this.release(&[command.work]).await;
                drop(under_way);
            }),
        );
    }

    /// A commit of this process left unclaimed work, due after this time. Any process with a free slot may claim it.
    pub(crate) fn announce_unclaimed(&self, due_in: Duration) {
        self.announce_work(due_in);
        // What falls due later is found by who looks then.
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

    /// The place of a command that was claimed. That there is room for it was known before.
    pub(crate) fn place_of(&self, command: &WorkItem<S>) -> QueueSlot {
        self.bulkheads.place(self.seat_of(&command.saga, command.command))
    }

    /// A place for a command that begins now, if there is one. One that is a call and would wait for a line is left for
    /// anybody who has one.
    pub(crate) fn place_to_begin(&self, seat: ConcurrencyKey) -> Option<QueueSlot> {
        let mut place = self.bulkheads.try_place(seat)?;
        if seat.pool == Pool::Calls {
            if self.calls.has_waiting(seat.flow()) {
                return None;
            }
            place.set_line(Some(self.bulkheads.try_line(seat)?));
        }
        Some(place)
    }

    /// Gives the workers a command whose owner vanished. One that vanished once more when it was recovered, and never ended
    /// otherwise, runs with no other such beside it: they would be counted for what it does.
    fn recover(self: &Arc<Self>, mut command: WorkItem<S>) {
        // Its place was for what waits for a line.
        if let Some(place) = &mut command.slot {
            place.leave_pool();
        }
        let has_vanished_again = command.attempts > 0 && command.retrying_for.is_zero();
        let lane = if has_vanished_again { &self.recovered_again } else { &self.recovered };
        let flow = self.seat_of(&command.saga, command.command).flow();
        let refused = lane.push_claimed(flow, command);
        self.return_refused(refused);
    }
}
