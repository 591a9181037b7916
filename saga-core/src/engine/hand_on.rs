//! What happens when a commit is known to have happened.

use std::sync::Arc;
use std::time::Duration;

use super::bulkhead::QueueSlot;
use super::command::WorkItem;
use super::prepared::PendingCommit;
use super::shared::EngineContext;
use crate::log;
use crate::machine::Effect;
use crate::store::{Hint, Store};

impl<S: Store> EngineContext<S> {
    /// Hands the next command on, tells who waits, and wakes who sends.
    pub(super) fn after_commit(self: &Arc<Self>, prepared: PendingCommit<S>, place: Option<QueueSlot>) {
        if prepared.has_messages {
            self.wake_relay();
        }
        for message in prepared.sent_from_memory {
            self.send_from_memory(message);
        }
        if let Some((saga, outcome)) = prepared.outcome {
            self.waiters.tell(saga, outcome);
        }
        if let Some(saga) = &prepared.saga {
            self.notify_related(saga);
        }
        if let Some(saga) = prepared.saga.filter(|_| prepared.awaits_reply) {
            self.waiting_cache.put(saga);
        }
        if let Some(due_in) = prepared.unclaimed_due_in {
            self.announce_unclaimed(due_in);
        } else if prepared.has_no_room {
            self.store.hint(Hint::Work);
        }
        if let Some(mut successor) = prepared.successor {
            successor.slot = successor.slot.or(place);
            self.enqueue(*successor);
        }
    }

    /// Gives a leased command to the workers of this process.
    pub(super) fn enqueue(self: &Arc<Self>, mut command: WorkItem<S>) {
        if !command.is_call() {
            // That of the command before it, in whose place it is.
            drop(command.take_line());
        }
        let flow = self.seat_of(&command.saga, command.command).flow();
        let refused = match command.effect() {
            Effect::Transactional => self.transactions.push(flow, command),
            Effect::External if command.has_line() && !self.is_stopping() => return self.start_call(command),
            Effect::External | Effect::Own | Effect::Signal => self.calls.push(flow, command),
            Effect::Remote { .. } => return self.resend(command),
        };
        self.return_refused(refused);
    }

    /// Gives a claimed command to the workers of this process.
    pub(super) fn enqueue_claimed(self: &Arc<Self>, command: WorkItem<S>) {
        let flow = self.seat_of(&command.saga, command.command).flow();
        let refused = match command.effect() {
            Effect::Remote { .. } => return self.resend(command),
            _ if command.recovered => return self.recover(command),
            Effect::Transactional => self.transactions.push_claimed(flow, command),
            Effect::External | Effect::Own | Effect::Signal => self.calls.push_claimed(flow, command),
        };
        self.return_refused(refused);
    }

    /// A queue that is closed takes nothing: the runtime shuts down, and the command is somebody else's.
    pub(super) fn return_refused(self: &Arc<Self>, refused: Option<WorkItem<S>>) {
        let Some(command) = refused else { return };
        let (shared, under_way) = (Arc::clone(self), self.tasks.enter());
        self.spawn(
            "give back",
            Box::pin(async move {
                shared.release(&[command.work]).await;
                drop(under_way);
            }),
        );
    }

    /// Ids for the commands that follow; nothing when the runtime stops before the store gives any.
    pub(super) async fn take_ids(&self, count: usize) -> Option<std::ops::Range<i64>> {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let ids = self.retry_store("reserve_ids", || self.ids.take(&*self.store, count)).await;
        if ids.is_none() {
            log::warn!("no ids while shutting down; the commands wait for the end of their leases");
        }
        ids
    }

    /// A commit of this process left work that nobody has, due after so long: whoever has a place for it may take it.
    pub(super) fn announce_unclaimed(&self, due_in: Duration) {
        self.announce_work(due_in);
        // What falls due later is found by who looks then.
        if due_in.is_zero() {
            self.store.hint(Hint::Work);
        }
    }

    /// A commit of this process left messages in the outbox. They are sent from here, or by whoever has their lane.
    pub(super) fn wake_relay(&self) {
        self.outbox_filled.notify_one();
        self.store.hint(Hint::Outbox);
    }

    /// Hears from other processes what there is to do, until it is dropped.
    pub(super) async fn listen(self: Arc<Self>) {
        let Some(mut listener) = self.store.listen() else { return };
        loop {
            match listener.heard().await {
                Hint::Work => self.announce_work(Duration::ZERO),
                Hint::Outbox => self.outbox_filled.notify_one(),
                Hint::Inbox => self.inbox_filled.notify_one(),
            }
        }
    }

    /// Says that there is work in the store that nobody has, due after so long.
    pub(super) fn announce_work(&self, due_in: Duration) {
        let now = self.env.now();
        if due_in.is_zero() {
            self.poll_timer.announce(now);
        } else {
            self.poll_timer.announce_later(now.saturating_add(due_in));
        }
    }
}
