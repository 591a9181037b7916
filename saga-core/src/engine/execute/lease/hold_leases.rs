//! Makes sure of the leases of commands before they run: no other process can have them during the attempt.
//!
//! A call that a commit passes on has a permit from the moment its row is written. The row is leased to this process
//! then, so the call begins at once. A call without a permit stays in the store, and each process claims no more rows
//! than it has slots for. A claimed row counts as begun only once the store was told so, in the statement that also
//! checks the lease. So a call that only waited when its owner died is known to have had no effect.

use std::sync::Arc;
use std::time::Duration;

use super::call_starts::Begun;
use super::lease_keeper::LeaseKeeper;
use crate::engine::instance::{WorkItem, refs};
use crate::engine::store_calls::{RecordError, Request, catch_panic};
use crate::log;
use crate::machine::Effect;
use crate::store::{Lease, Store, WorkRef};

/// How many beginnings one statement records at most.
const GROUP_MAX: usize = 256;

impl<S: Store> LeaseKeeper<S> {
    /// Whether no other process can have the command now or during an attempt. A transaction checks the row itself;
    /// before a call, this process must not have been taken for dead since it leased the row.
    pub(crate) fn surely_has(&self, command: &WorkItem<S>) -> bool {
        let lasts = self.ctx.env.now().saturating_add(lease_needed(command)) <= command.lease_until;
        lasts && !command.is_claimed_only && (!is_call(command) || self.is_still_owner(command))
    }

    /// Whether no other process can have claimed the command until now.
    pub(crate) fn may_call(&self, command: &WorkItem<S>) -> bool {
        !is_call(command) || (self.ctx.env.now() < command.lease_until && self.is_still_owner(command))
    }

    fn is_still_owner(&self, command: &WorkItem<S>) -> bool {
        command.owner == self.scheduler.membership.member_id() && self.scheduler.membership.is_alive()
    }

    /// Keeps the commands whose leases this process surely holds, and renews leases as needed. A command that is not
    /// returned belongs to another process.
    pub(crate) async fn hold_leases(&self, commands: Vec<WorkItem<S>>) -> Vec<WorkItem<S>> {
        let is_held = |command: &WorkItem<S>| command.inline.is_some() || self.surely_has(command);
        let (held, short): (Vec<_>, Vec<_>) = commands.into_iter().partition(is_held);
        if short.is_empty() {
            return held;
        }
        // Boxed, since it is large and rarely needed.
        Box::pin(self.hold_again(held, short)).await
    }

    async fn hold_again(&self, mut held: Vec<WorkItem<S>>, short: Vec<WorkItem<S>>) -> Vec<WorkItem<S>> {
        if !self.scheduler.membership.is_alive() && short.iter().any(is_call) {
            self.scheduler.membership.heartbeat_now().await;
        }
        let longest = short.iter().map(lease_needed).max().unwrap_or_default();
        let ttl = self.ctx.settings.lease_ttl.max(longest + self.ctx.settings.poll_interval);
        let (waiting, short): (Vec<_>, Vec<_>) = short.into_iter().partition(|command| command.is_claimed_only);
        for command in waiting {
            held.extend(self.begin_claimed(command, ttl).await);
        }
        if short.is_empty() {
            return held;
        }
        let (now, lease) = (self.ctx.env.now(), Lease { owner: self.scheduler.membership.member_id(), ttl });
        match self.ctx.store.renew(&refs(&short), lease).await {
            Ok(renewed) => {
                let still_ours = short.into_iter().zip(renewed).filter(|(_, renewed)| *renewed);
                held.extend(still_ours.map(|(mut command, _)| {
                    (command.lease_until, command.owner) = (now.saturating_add(ttl), lease.owner);
                    command
                }));
            }
            Err(error) => {
                log::warn!(%error, count = short.len(), "leases not renewed");
                self.scheduler.release(&refs(&short)).await;
            }
        }
        held
    }

    /// Records in the store that a claimed call begins; `None` if another process has it by now.
    async fn begin_claimed(&self, mut command: WorkItem<S>, ttl: Duration) -> Option<WorkItem<S>> {
        match self.call_starts.calls.call((command.work, ttl)).await? {
            Ok(Some((until, owner))) => {
                (command.lease_until, command.owner, command.is_claimed_only) = (until, owner, false);
                Some(command)
            }
            Ok(None) => None,
            Err(error) => {
                log::warn!(work_id = command.work.id.0, %error, "claimed call not begun");
                self.scheduler.release(&[command.work]).await;
                None
            }
        }
    }

    /// Records which calls begin, until it is dropped.
    pub(crate) async fn serve_call_starts(self: Arc<Self>) {
        self.call_starts.calls.serve(&self.ctx.lifecycle.stopped, GROUP_MAX, |group| self.begin_group(group)).await;
    }

    async fn begin_group(&self, group: Vec<Request<(WorkRef, Duration), Result<Begun, RecordError>>>) {
        let work: Vec<WorkRef> = group.iter().map(|request| request.call.0).collect();
        let ttl = group.iter().map(|request| request.call.1).max().unwrap_or_default();
        let (until, owner) = (self.ctx.env.now().saturating_add(ttl), self.scheduler.membership.member_id());
        match catch_panic("begin", self.ctx.store.begin(&work, Lease { owner, ttl })).await {
            Ok(begun) => {
                self.ctx.health.store_works("begin");
                for (request, is_ours) in group.into_iter().zip(begun) {
                    request.answer(Ok(is_ours.then_some((until, owner))));
                }
            }
            Err(error) => {
                self.ctx.health.store_failed("begin", &error);
                for request in group {
                    request.answer(Err((&error).into()));
                }
            }
        }
    }
}

fn is_call<S: Store>(command: &WorkItem<S>) -> bool {
    command.effect() == Effect::External
}

/// How long a lease has to last when an attempt begins: that of an exclusive step is renewed then.
fn lease_needed<S: Store>(command: &WorkItem<S>) -> Duration {
    if command.options().exclusive { Duration::ZERO } else { command.time_limit() }
}
