//! A call begins on a line, under a claim that nobody else can have by then.
//!
//! A call that is handed on has a line from the moment that its row is written, which is leased to this process then: it
//! begins at once. What has no line is left in the store. From there each process claims no more than it has places for; a
//! row that was claimed counts as begun only when the store was told so, in the statement that also says whether the claim
//! still stands. So what merely waited when its owner vanished is known to have done nothing.

use std::sync::Arc;
use std::time::Duration;

use super::call_starts::Begun;
use super::lease_keeper::LeaseKeeper;
use crate::engine::instance::{WorkItem, refs};
use crate::engine::store_calls::{RecordError, Request};
use crate::log;
use crate::store::{Lease, Store, WorkRef};

/// How many calls one statement begins at most.
const GROUP_MAX: usize = 256;

impl<S: Store> LeaseKeeper<S> {
    /// Whether nobody else can have the command now, nor while an attempt takes its time. A transaction looks at the row
    /// itself; before a call, this process must not have been taken for dead since it got the row.
    pub(crate) fn surely_has(&self, command: &WorkItem<S>) -> bool {
        let lasts = self.ctx.env.now().saturating_add(command.lease_needed()) <= command.lease_until;
        lasts && !command.is_claimed_only && (!command.is_call() || self.is_still_owner(command))
    }

    /// Whether no time has passed in which somebody else could take the command.
    pub(crate) fn may_call(&self, command: &WorkItem<S>) -> bool {
        !command.is_call() || (self.ctx.env.now() < command.lease_until && self.is_still_owner(command))
    }

    fn is_still_owner(&self, command: &WorkItem<S>) -> bool {
        command.owner == self.scheduler.membership.member_id() && self.scheduler.membership.is_alive()
    }

    /// Keeps the commands that are surely this process' own, renewing their leases where that is needed; what does not come
    /// back belongs to somebody else.
    pub(crate) async fn hold_leases(&self, commands: Vec<WorkItem<S>>) -> Vec<WorkItem<S>> {
        let is_held = |command: &WorkItem<S>| command.inline_start.is_some() || self.surely_has(command);
        let (held, short): (Vec<_>, Vec<_>) = commands.into_iter().partition(is_held);
        if short.is_empty() {
            return held;
        }
        // It is large, and rarely needed.
        Box::pin(self.hold_again(held, short)).await
    }

    async fn hold_again(&self, mut held: Vec<WorkItem<S>>, short: Vec<WorkItem<S>>) -> Vec<WorkItem<S>> {
        if !self.scheduler.membership.is_alive() && short.iter().any(WorkItem::is_call) {
            self.scheduler.membership.heartbeat_now().await;
        }
        let longest = short.iter().map(WorkItem::lease_needed).max().unwrap_or_default();
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
                log::warn!(%error, count = short.len(), "leases could not be renewed; the commands are given back");
                self.scheduler.release(&refs(&short)).await;
            }
        }
        held
    }

    /// Tells the store that a claimed call begins. Nothing where somebody else has it by now.
    async fn begin_claimed(&self, mut command: WorkItem<S>, ttl: Duration) -> Option<WorkItem<S>> {
        match self.call_starts.calls.call((command.work, ttl)).await? {
            Ok(Some((until, owner))) => {
                (command.lease_until, command.owner, command.is_claimed_only) = (until, owner, false);
                Some(command)
            }
            Ok(None) => None,
            Err(error) => {
                log::warn!(%error, "a claimed call could not begin; it is given back");
                self.scheduler.release(&[command.work]).await;
                None
            }
        }
    }

    /// Tells the store which calls begin, those that came together in one statement.
    pub(crate) async fn serve_begins(self: Arc<Self>) {
        self.call_starts.calls.serve(GROUP_MAX, |group| self.begin_group(group)).await;
    }

    async fn begin_group(&self, group: Vec<Request<(WorkRef, Duration), Result<Begun, RecordError>>>) {
        let work: Vec<WorkRef> = group.iter().map(|request| request.call.0).collect();
        let ttl = group.iter().map(|request| request.call.1).max().unwrap_or_default();
        let (until, owner) = (self.ctx.env.now().saturating_add(ttl), self.scheduler.membership.member_id());
        match self.ctx.store.begin(&work, Lease { owner, ttl }).await {
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
