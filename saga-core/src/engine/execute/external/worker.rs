//! Starts external steps as permits become free, and records their results.

use std::pin::pin;
use std::sync::Arc;

use crate::engine::bulkhead::{Admission, ConcurrencyKey, Pool};
use crate::engine::commit::Committer;
use crate::engine::context::EngineContext;
use crate::engine::decide::{late_success, make_choice};
use crate::engine::execute::attempt::Attempts;
use crate::engine::execute::builtin::BuiltinSteps;
use crate::engine::execute::lease::LeaseKeeper;
use crate::engine::execute::lock::StepLocks;
use crate::engine::execute::progress::ProgressWriter;
use crate::engine::execute::record::AttemptRecorder;
use crate::engine::execute::sub_saga::SubSagas;
use crate::engine::instance::{TakenWork, WorkItem};
use crate::machine::Effect;
use crate::saga::StepRun;
use crate::store::Store;
use crate::unwind::caught;

/// Runs external steps.
pub(crate) struct ExternalCalls<S: Store> {
    pub(crate) ctx: Arc<EngineContext<S>>,
    pub(crate) committer: Arc<Committer<S>>,
    pub(crate) attempts: Arc<Attempts<S>>,
    pub(crate) leases: Arc<LeaseKeeper<S>>,
    pub(crate) records: Arc<AttemptRecorder<S>>,
    pub(super) progress: Arc<ProgressWriter<S>>,
    pub(crate) locks: Arc<StepLocks<S>>,
    builtin: BuiltinSteps<S>,
    sub_sagas: Arc<SubSagas<S>>,
}

impl<S: Store> ExternalCalls<S> {
    pub(crate) fn new(
        attempts: Arc<Attempts<S>>,
        locks: Arc<StepLocks<S>>,
        leases: Arc<LeaseKeeper<S>>,
        records: Arc<AttemptRecorder<S>>,
        progress: Arc<ProgressWriter<S>>,
        builtin: BuiltinSteps<S>,
        sub_sagas: Arc<SubSagas<S>>,
    ) -> Self {
        let (ctx, committer) = (Arc::clone(&records.ctx), Arc::clone(&records.committer));
        Self { ctx, committer, attempts, leases, records, progress, locks, builtin, sub_sagas }
    }
}

impl<S: Store> ExternalCalls<S> {
    /// Starts the calls of the queue until it is closed.
    pub(crate) async fn serve_calls(self: Arc<Self>) {
        let admit = |key: ConcurrencyKey| match key.pool {
            Pool::Calls => Admission::with(self.committer.scheduler.bulkheads.try_acquire_permit(key)),
            // Steps that the engine runs itself are short, and need no permit.
            Pool::Transactions => Admission::Runs(None),
        };
        while let Some(commands) = self
            .committer
            .scheduler
            .calls
            .next(|lane, admitted| self.committer.scheduler.take_first(lane, admitted, admit))
            .await
        {
            for command in commands {
                self.start_call(command);
            }
        }
    }

    /// Starts a call that has its permit. If that panics, the command is put back.
    pub(crate) fn start_call(self: &Arc<Self>, command: WorkItem<S>) {
        let taken = [TakenWork::of(&command)];
        let Err(panic) = caught(|| self.spawn_call(command, taken)) else { return };
        self.ctx.lifecycle.has_panicked("call", &panic);
        let this = Arc::clone(self);
        self.ctx.lifecycle.spawn("put back", Box::pin(async move { this.committer.put_back(&taken, &panic).await }));
    }

    fn spawn_call(self: &Arc<Self>, mut command: WorkItem<S>, taken: [TakenWork; 1]) {
        // An exclusive step may take hours. Calls that wait for its permit would lose their leases.
        if command.options().exclusive
            && let Some(slot) = &mut command.slot
        {
            slot.leave_pool();
        }
        let (this, under_way) = (Arc::clone(self), self.ctx.lifecycle.enter());
        self.ctx.lifecycle.spawn(
            "call",
            Box::pin(async move {
                this.committer.watch_over("calls", &taken, pin!(this.run_call(command))).await;
                drop(under_way);
            }),
        );
    }

    /// Runs one command and records its result.
    pub(crate) async fn run_call(self: &Arc<Self>, command: WorkItem<S>) {
        // The ids are taken first: nothing is awaited between the check of the lease and the call.
        let Some(next_ids) = self.committer.store_calls.take_ids(command.saga.definition.width).await else { return };
        let commands = self.leases.hold_leases(self.locks.take(vec![command]).await).await;
        let Some(mut command) = commands.into_iter().next() else { return };
        if command.options().exclusive && !self.leases.take_lease(&mut command).await {
            return self.committer.scheduler.release(&[command.work]).await;
        }
        let attempted = match &command.late_success {
            // An earlier owner recorded that the call took effect.
            Some(noted) => late_success::attempted(&command, noted),
            None if command.step().saga().is_some() => {
                return self.sub_sagas.run_sub_saga(command, next_ids.start).await;
            }
            None if let StepRun::Idle(idle) = &command.step().run => {
                let idle = idle.clone();
                return self.builtin.end_wait(command, &idle, next_ids.start).await;
            }
            None if matches!(command.effect(), Effect::Own | Effect::Signal) => {
                let is_choice = command.saga.definition.shape.is_choice(command.step_index());
                let done =
                    if is_choice { Some(make_choice(&command)) } else { self.builtin.fan_out_or_join(&command).await };
                let Some((attempted, next)) = done else { return };
                return self.records.record_attempt(command, attempted, next, next_ids.start).await;
            }
            None => self.resolve_or_call(&command).await,
        };
        let next = self.attempts.decider.after(&command, &attempted);
        self.attempts.statistics.count(&command, &attempted.ending);
        self.records.record_attempt(command, attempted, next, next_ids.start).await;
    }
}
