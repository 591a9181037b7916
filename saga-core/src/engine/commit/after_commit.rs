//! What follows from a commit.

use std::sync::Arc;

use super::committer::Committer;
use super::log_turn::log_turn;
use crate::engine::bulkhead::QueueSlot;
use crate::engine::instance::PendingCommit;
use crate::store::{Hint, Store};

impl<S: Store> Committer<S> {
    /// Hands the next command on, tells who waits, and wakes who sends.
    pub(crate) fn after_commit(self: &Arc<Self>, prepared: PendingCommit<S>, slot: Option<QueueSlot>) {
        let moved = prepared.saga.as_ref().or(prepared.successor.as_ref().map(|successor| &successor.saga));
        if let Some((saga, phase)) = moved.zip(prepared.turned) {
            log_turn(saga, phase);
        }
        if prepared.has_messages {
            self.outbox.wake_relay();
        }
        for message in prepared.sent_from_memory {
            self.outbox.send_from_memory(message);
        }
        if let Some((saga, outcome)) = prepared.outcome {
            self.waiters.tell(saga, outcome);
        }
        if let Some(saga) = &prepared.saga {
            self.related.notify_related(saga, prepared.turned.is_some());
        }
        if let Some(saga) = prepared.saga.filter(|_| prepared.awaits_reply) {
            self.waiting_cache.put(saga);
        }
        if let Some(due_in) = prepared.unclaimed_due_in {
            self.scheduler.announce_unclaimed(due_in);
        } else if prepared.has_no_room {
            self.ctx.store.hint(Hint::Work);
        }
        if let Some(mut successor) = prepared.successor {
            successor.slot = successor.slot.or(slot);
            self.scheduler.enqueue(*successor);
        }
    }
}
