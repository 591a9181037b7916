//! Runs commands whose owner died. One of them may be what killed it, so each attempt is recorded before it begins.

use std::pin::pin;
use std::sync::Arc;

use crate::engine::bulkhead::{Admission, ConcurrencyKey};
use crate::engine::context::EngineContext;
use crate::engine::execute::external::ExternalCalls;
use crate::engine::execute::sub_saga;
use crate::engine::execute::transaction::Transactions;
use crate::engine::instance::{AttemptDetails, AttemptResult, TakenWork, WorkItem};
use crate::machine::{Effect, Ending, Next, crashed_attempts_max};
use crate::store::Store;

/// The result of a command whose owners died on every attempt that it may have.
pub(crate) fn vanished<S: Store>(command: &WorkItem<S>) -> AttemptResult {
    AttemptResult {
        ending: Ending::Vanished,
        findings: AttemptDetails { attempts: command.attempts, ..AttemptDetails::default() },
    }
}

/// Runs commands whose owner died.
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
    /// Runs recovered commands one by one, until the queue is closed. Several such workers run concurrently.
    pub(crate) async fn serve_recovered(self: Arc<Self>, is_for_repeated: bool) {
        // The number of recovery workers is the limit, instead of the permits of the pool.
        let admit = |key: ConcurrencyKey| {
            Admission::with(self.external.committer.scheduler.bulkheads.try_acquire_outside_pool(key))
        };
        let queue = if is_for_repeated {
            &self.external.committer.scheduler.recovered_again
        } else {
            &self.external.committer.scheduler.recovered
        };
        while let Some(commands) =
            queue.next(|queue, taken| self.external.committer.scheduler.take_first(queue, taken, admit)).await
        {
            for command in commands {
                let under_way = self.ctx.lifecycle.enter();
                let taken = [TakenWork::of(&command)];
                // An exclusive step may take hours: this worker does not wait for it.
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
                    // Boxed, since the worker waits most of the time and its future should be small.
                    self.external
                        .committer
                        .watch_over("recoveries", &taken, Box::pin(self.run_recovered(command)))
                        .await;
                }
            }
        }
    }

    async fn run_recovered(self: &Arc<Self>, command: WorkItem<S>) {
        let default = &self.ctx.settings.retry;
        let asks = command.resolve().map(|resolve| resolve.options.retry_policy(default));
        let max = crashed_attempts_max(&command.options().retry_policy(default), asks.as_ref());
        if command.attempts >= max && command.late_success.is_none() {
            let attempted = vanished(&command);
            let next = if command.step().saga().is_some() {
                sub_saga::given_up(&command)
            } else {
                self.external.attempts.decider.after(&command, &attempted)
            };
            // A step without a limit of attempts is tried again; any other is out of attempts.
            if matches!(next, Next::Settled(_)) {
                let Some(ids) = self.external.committer.store_calls.take_ids(command.saga.definition.width).await
                else {
                    return;
                };
                return self.external.records.record_attempt(command, attempted, next, ids.start).await;
            }
        }
        // A command that waits for its lock, or whose lease cannot be held, is released, and no attempt is counted.
        let commands = self.external.leases.hold_leases(self.external.locks.take(vec![command]).await).await;
        let Some(mut command) = commands.into_iter().next() else { return };
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
        // The number makes this idempotent: a retry after an unknown commit counts once.
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
