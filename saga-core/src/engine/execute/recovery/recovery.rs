//! Recovered commands, which were taken from an owner that vanished: one of them may be what made it vanish.

use std::pin::pin;
use std::sync::Arc;

use crate::engine::bulkhead::{Admission, ConcurrencyKey};
use crate::engine::context::EngineContext;
use crate::engine::execute::external::ExternalCalls;
use crate::engine::execute::sub_saga;
use crate::engine::execute::transaction::Transactions;
use crate::engine::instance::{AttemptDetails, AttemptResult, TakenWork, WorkItem};
use crate::machine::{Effect, Ending, Next};
use crate::store::Store;

/// What a command that vanished with its owner as often as it may be tried ended with.
pub(crate) fn vanished<S: Store>(command: &WorkItem<S>) -> AttemptResult {
    AttemptResult {
        ending: Ending::Vanished,
        findings: AttemptDetails { attempts: command.attempts, ..AttemptDetails::default() },
    }
}

/// Runs commands that were taken over from a process that vanished.
pub(crate) struct Recovery<S: Store> {
    ctx: Arc<EngineContext<S>>,
    external: Arc<ExternalCalls<S>>,
    transactions: Arc<Transactions<S>>,
}

impl<S: Store> Recovery<S> {
    pub(crate) fn new(external: Arc<ExternalCalls<S>>, transactions: Arc<Transactions<S>>) -> Self {
        Self { ctx: Arc::clone(&external.ctx), external, transactions }
    }
}

impl<S: Store> Recovery<S> {
    /// Runs recovered commands, each alone, its attempt written down before it begins: a command that ends its process is
    /// counted each time. There are several such lanes beside each other.
    pub(crate) async fn serve_recovered(self: Arc<Self>, is_for_repeaters: bool) {
        // It has a lane instead of one of the lines.
        let line_of =
            |seat: ConcurrencyKey| Admission::on(self.external.committer.scheduler.bulkheads.try_beside(seat));
        let lane = if is_for_repeaters {
            &self.external.committer.scheduler.recovered_again
        } else {
            &self.external.committer.scheduler.recovered
        };
        while let Some(commands) =
            lane.next(|lane, taken| self.external.committer.scheduler.take_first(lane, taken, line_of)).await
        {
            for command in commands {
                let under_way = self.ctx.lifecycle.enter();
                let taken = [TakenWork::of(&command)];
                // An exclusive step may take hours: nothing waits for its end.
                if command.options().exclusive {
                    let this = Arc::clone(&self);
                    self.ctx.lifecycle.spawn(
                        "recovered call",
                        Box::pin(async move {
                            this.external
                                .committer
                                .watch_over("recoveries", &taken, pin!(this.run_recovered(command)))
                                .await;
                            drop(under_way);
                        }),
                    );
                } else {
                    // A lane waits most of the time: what it runs now and then is not a part of it.
                    self.external
                        .committer
                        .watch_over("recoveries", &taken, Box::pin(self.run_recovered(command)))
                        .await;
                }
            }
        }
    }

    async fn run_recovered(self: &Arc<Self>, command: WorkItem<S>) {
        if command.attempts >= command.attempts_max() && command.late_success.is_none() {
            let attempted = vanished(&command);
            let next = if command.is_child() {
                sub_saga::given_up(&command)
            } else {
                self.external.attempts.decider.after(&command, &attempted)
            };
            // What can only go forward is tried on; everything else is out of attempts.
            if matches!(next, Next::Settled(_)) {
                let Some(ids) = self.external.committer.store_calls.take_ids(command.saga.definition.width).await
                else {
                    return;
                };
                return self.external.records.record_attempt(command, attempted, next, ids.start).await;
            }
        }
        // What cannot be held now is given back, and counts as no attempt.
        let Some(mut command) = self.external.leases.hold_leases(vec![command]).await.pop() else { return };
        if command.options().exclusive && !self.external.leases.take_lease(&mut command).await {
            return self.external.committer.scheduler.release(&[command.work]).await;
        }
        if !self.write_attempt(&mut command).await {
            return;
        }
        match command.effect() {
            Effect::Transactional => self.transactions.run_transactions(vec![command]).await,
            Effect::External | Effect::Remote { .. } | Effect::Own | Effect::Signal => {
                Box::pin(self.external.run_call(command)).await;
            }
        }
    }

    async fn write_attempt(&self, command: &mut WorkItem<S>) -> bool {
        // It is numbered, so that writing it down again after a commit in doubt counts it once.
        let attempt = command.attempts + 1;
        let work = command.work;
        let is_held = self
            .external
            .committer
            .store_calls
            .retry_store("begin_attempt", || self.ctx.store.begin_attempt(work, attempt))
            .await;
        if is_held.is_some() {
            command.attempts = attempt;
        }
        is_held.unwrap_or(false)
    }
}
