//! Renews the leases of commands that wait in the queues of this process.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::scheduler::Scheduler;
use crate::engine::bulkhead::{Pool, QueueSlot};
use crate::engine::instance::WorkItem;
use crate::engine::queue::Queue;
use crate::env::Pause;
use crate::log;
use crate::store::{Lease, MemberId, Store, WorkRef};

/// How many leases one statement renews at most.
const GROUP_MAX: usize = 1_000;

impl<S: Store> Scheduler<S> {
    /// Renews the leases of waiting commands at each third of a lease, until it is dropped. A command whose lease is lost leaves
    /// its queue.
    pub(crate) async fn renew_queued(self: Arc<Self>) {
        let third = self.ctx.settings.lease_ttl / 3;
        loop {
            // Leases that are held have to be renewed in time; otherwise this only looks.
            if self.queues().iter().all(|queue| queue.is_empty()) {
                self.ctx.env.pause(Pause::of(third)).await;
            } else {
                self.ctx.env.sleep(third).await;
            }
            if self.membership.is_alive() {
                self.release_surplus().await;
                self.renew_all_queued(third).await;
            }
        }
    }

    /// Releases calls that were claimed while calls were quick, and now wait behind slow ones: other processes may have permits.
    async fn release_surplus(&self) {
        let mut surplus = self.bulkheads.surplus();
        if surplus.iter().all(|calls| *calls == 0) {
            return;
        }
        let released = self.calls.take_last(|command| {
            let key = command.slot.as_ref().map(QueueSlot::concurrency_key).filter(|key| key.pool == Pool::Calls);
            let left = key.and_then(|key| surplus.get_mut(key.definition as usize));
            let Some(left) = left.filter(|left| **left > 0 && command.inline.is_none()) else { return false };
            *left -= 1;
            true
        });
        log::debug!(count = released.len(), "surplus calls released");
        self.release_all(released).await;
    }

    pub(crate) fn queues(&self) -> [&Queue<WorkItem<S>>; 4] {
        [&self.transactions, &self.calls, &self.recovered, &self.recovered_again]
    }

    async fn renew_all_queued(&self, third: Duration) {
        let ttl = self.ctx.settings.lease_ttl;
        let owner = self.membership.member_id();
        let fresh_until = self.ctx.env.now().saturating_add(ttl.saturating_sub(third));
        let is_due = |command: &WorkItem<S>| {
            command.inline.is_none() && (command.lease_until <= fresh_until || command.owner != owner)
        };
        let mut due = Vec::new();
        for queue in self.queues() {
            queue.for_each(|command| due.extend(is_due(command).then_some(command.work)));
        }
        for group in due.chunks(GROUP_MAX) {
            let until = self.ctx.env.now().saturating_add(ttl);
            match self.ctx.store.renew(group, Lease { owner, ttl }).await {
                Ok(held) => {
                    self.ctx.health.store_works("renew");
                    let held = group.iter().copied().zip(held).collect();
                    self.note_renewed(&held, until, owner);
                }
                Err(error) => return self.ctx.health.store_failed("renew", &error),
            }
        }
    }

    fn note_renewed(&self, held: &HashMap<WorkRef, bool>, until: Duration, owner: MemberId) {
        let mut lost = 0;
        for queue in self.queues() {
            lost += queue.retain(|command| match held.get(&command.work) {
                Some(true) => {
                    (command.lease_until, command.owner) = (until, owner);
                    true
                }
                Some(false) => false,
                None => true,
            });
        }
        if lost > 0 {
            log::warn!(count = lost, "leases of queued commands lost");
        }
    }
}
