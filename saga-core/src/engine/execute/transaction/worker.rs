//! Workers that run transactional steps: each takes a share of the queue, and commits it in as few transactions as possible.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use super::batch::Batch;
use super::commit_failures::{Failures, OPERATION};
use super::entry::BatchEntry;
use crate::engine::bulkhead::{Admission, ConcurrencyPermit, FairQueue, QueueSlot};
use crate::engine::commit::Committer;
use crate::engine::context::EngineContext;
use crate::engine::execute::attempt::Attempts;
use crate::engine::execute::lease::LeaseKeeper;
use crate::engine::execute::lock::StepLocks;
use crate::engine::execute::record::AttemptRecorder;
use crate::engine::instance::{InlineRequest, TakenWork, WorkItem, takes_semantic_lock};
use crate::engine::schedule::take_with_permit;
use crate::engine::start::log_start;
use crate::machine::{Effect, Ending};
use crate::store::Store;
use crate::unwind::{caught, caught_while};

/// Commands that share the next transaction.
pub(super) struct SubBatch<S: Store> {
    pub(super) commands: Vec<WorkItem<S>>,
    /// How many commits in a row failed through no fault of their steps.
    pub(super) failures: u32,
    /// Whether each handler gets its own savepoint.
    pub(super) uses_own_savepoints: bool,
}

impl<S: Store> SubBatch<S> {
    pub(super) fn of(commands: Vec<WorkItem<S>>) -> Self {
        Self { commands, failures: 0, uses_own_savepoints: false }
    }
}

/// Runs transactional steps, many of them in one transaction if they may share it.
pub(crate) struct Transactions<S: Store> {
    pub(super) ctx: Arc<EngineContext<S>>,
    pub(super) committer: Arc<Committer<S>>,
    pub(super) attempts: Arc<Attempts<S>>,
    locks: Arc<StepLocks<S>>,
    leases: Arc<LeaseKeeper<S>>,
    pub(super) records: Arc<AttemptRecorder<S>>,
}

impl<S: Store> Transactions<S> {
    pub(crate) fn new(
        attempts: Arc<Attempts<S>>,
        locks: Arc<StepLocks<S>>,
        leases: Arc<LeaseKeeper<S>>,
        records: Arc<AttemptRecorder<S>>,
    ) -> Self {
        let (ctx, committer) = (Arc::clone(&records.ctx), Arc::clone(&records.committer));
        Self { ctx, committer, attempts, locks, leases, records }
    }
}

impl<S: Store> Transactions<S> {
    /// Takes commands and runs them until the queue is closed.
    pub(crate) async fn serve_transactions(self: Arc<Self>) {
        let workers = self.ctx.settings.transactions_max;
        let take = |queue: &mut _, taken: &mut _, share| self.pick_batch(queue, taken, share);
        while let Some(mut commands) =
            self.committer.scheduler.transactions.next_share(&*self.ctx.env, workers, take).await
        {
            let _under_way = self.ctx.lifecycle.enter();
            let taken: Vec<TakenWork> = commands.iter().map(TakenWork::of).collect();
            let take_permit = |command: &mut WorkItem<S>| command.slot.as_mut().and_then(QueueSlot::take_permit);
            let first = commands.first_mut().and_then(take_permit);
            let others: Vec<ConcurrencyPermit> = commands.iter_mut().filter_map(take_permit).collect();
            self.committer.watch_over("transactions", &taken, pin!(self.run_transactions(commands))).await;
            drop((first, others));
            self.attempts.limits.leave_contended(taken.iter().map(|taken| taken.work.id));
            self.committer.scheduler.transactions.done(taken.len());
        }
    }

    /// Takes at most `share` commands that may share a transaction: of one tenant unless the settings let tenants share commits, each
    /// of another saga, none past the limit of its step. Contended steps run in one transaction at a time, so they are taken together, even beyond the share. A command that
    /// may not run now is passed over.
    fn pick_batch(&self, queue: &mut FairQueue<WorkItem<S>>, taken: &mut Vec<WorkItem<S>>, share: usize) {
        let is_contended = |command: &WorkItem<S>| self.attempts.limits.is_contended(command.step().name);
        let shares_tenants = self.ctx.settings.tenants_share_commits;
        let mut holds = taken.iter().any(is_contended);
        let mut index = 0;
        while let Some(command) = queue.get(index) {
            let is_contended = is_contended(command);
            let share = if is_contended { usize::MAX } else { share };
            let limit = if command.options().grouped { self.limit_of(command).min(share) } else { 1 };
            let fits = taken.is_empty()
                || taken.len() < limit
                    && taken.iter().all(|other| {
                        other.options().grouped
                            && (shares_tenants || other.saga.tenant == command.saga.tenant)
                            && other.saga.id != command.saga.id
                    });
            if !fits {
                return;
            }
            if is_contended && !holds && !self.attempts.limits.enter_contended(command.work.id) {
                index += 1;
                continue;
            }
            let Admission::Runs(held) = self.admit_beside(command, taken) else {
                if is_contended && !holds {
                    self.attempts.limits.leave_contended(std::iter::once(command.work.id));
                }
                index += 1;
                continue;
            };
            holds |= is_contended;
            let alone = limit == 1;
            taken.extend(take_with_permit(queue, index, held));
            if alone {
                return;
            }
        }
    }

    /// Whether the command may run in the transaction of those that were taken. The first command holds the permit of the
    /// transaction. Of the others, only the first command of each limited step needs a permit.
    fn admit_beside(&self, command: &WorkItem<S>, taken: &[WorkItem<S>]) -> Admission {
        let key = self.committer.scheduler.concurrency_key(&command.saga, command.command);
        if taken.is_empty() {
            return Admission::with(self.committer.scheduler.bulkheads.try_acquire_permit(key));
        }
        let is_counted =
            |other: &WorkItem<S>| self.committer.scheduler.concurrency_key(&other.saga, other.command) == key;
        if !self.committer.scheduler.bulkheads.limits.is_limited(key) || taken.iter().any(is_counted) {
            return Admission::Runs(None);
        }
        Admission::with(self.committer.scheduler.bulkheads.try_acquire_outside_pool(key))
    }

    /// How many commands may share a transaction with this one, itself included.
    fn limit_of(&self, command: &WorkItem<S>) -> usize {
        let limit = self.attempts.limits.of(command.step().name);
        if command.is_batch() { limit } else { limit.min(self.attempts.limits.batch_max()) }
    }

    /// Runs commands to their results, in as many transactions as needed.
    pub(crate) async fn run_transactions(self: &Arc<Self>, commands: Vec<WorkItem<S>>) {
        let mut waiting = vec![SubBatch::of(commands)];
        while let Some(SubBatch { commands, failures, uses_own_savepoints }) = waiting.pop() {
            let commands = self.locks.take_or_want(commands, |command| self.takes_locks(command)).await;
            let commands = self.leases.hold_leases(commands).await;
            if commands.is_empty() {
                continue;
            }
            let widths = commands.iter().map(|command| command.saga.definition.width).sum();
            let Some(ids) = self.committer.store_calls.take_ids(widths).await else { return };
            let works_before = self.writes_without_steps(&commands, failures).await;
            let batch = Batch::new(commands, ids, uses_own_savepoints);
            let began = self.ctx.env.now();
            match caught_while(self.ctx.store.transact(batch.claims(), batch.body(&self.attempts))).await {
                Ok(Ok(())) => waiting.extend(self.committed(batch.take(), began).await),
                // Boxed, since it is large and rarely needed.
                Ok(Err(error)) => {
                    let failures = Failures { so_far: failures, works_before };
                    Box::pin(self.not_committed(&batch, &error, failures, &mut waiting)).await;
                }
                Err(panic) => Box::pin(self.transact_panicked(batch.take(), &panic)).await,
            }
        }
    }

    /// Whether the transaction of the command takes its locks. A long one would keep others from asking for them, and they could not
    /// wait in their order.
    fn takes_locks(&self, command: &WorkItem<S>) -> bool {
        let is_called = command.effect() == Effect::Transactional || takes_semantic_lock(command);
        is_called && !command.recovered && self.attempts.joins_others(command)
    }

    /// Handles a commit. Returns the commands that run again: each alone, or together those that wait for their locks.
    async fn committed(self: &Arc<Self>, members: Vec<BatchEntry<S>>, began: Duration) -> Vec<SubBatch<S>> {
        self.ctx.health.store_works(OPERATION);
        // A clock that panics here must not cost the commands that follow.
        let took = caught(|| self.ctx.env.now()).map_or(Duration::ZERO, |now| now.saturating_sub(began));
        let (count, mut handlers) = (members.len(), Duration::ZERO);
        let (mut lost, mut apart, mut locked) = (Vec::new(), Vec::new(), Vec::new());
        for member in members {
            let work = member.work();
            self.note_locks(&member);
            if member.reruns_alone {
                apart.extend(member.into_claimed().map(|command| SubBatch::of(vec![command])));
                continue;
            }
            let (Some(prepared), true) = (member.pending, member.granted) else {
                let lacks_lock = member.locks.lack_required();
                match (member.inline, member.command) {
                    (Some(request), _) => request.leave(),
                    (None, Some(command)) if lacks_lock => locked.push(WorkItem { asks_for_lock: true, ..*command }),
                    _ => lost.extend(work),
                }
                continue;
            };
            for step in &member.chained {
                self.attempts.limits.was_done(step.name, step.is_undo, step.took);
                handlers += step.took;
                // A lock is no call of a function.
                if !step.is_lock {
                    self.attempts.statistics.count_done(step.is_undo);
                }
            }
            if let (Some(command), Some((attempted, _))) = (&member.command, &member.attempted) {
                let (step, share) = (command.step().name, attempted.findings.share);
                handlers += share;
                match attempted.ending {
                    Ending::Done => self.attempts.limits.was_done(step, command.is_undo(), share),
                    _ => self.attempts.limits.succeeded(step, share),
                }
                if !takes_semantic_lock(command) {
                    self.attempts.statistics.count(command, &attempted.ending);
                }
            }
            if let Some(request) = member.inline {
                if let InlineRequest::Start(starting) = &request {
                    self.attempts.statistics.count_start(true);
                    log_start(&starting.saga);
                }
                request.answer(Ok(()));
            }
            self.committer.after_commit(prepared, member.command.and_then(|command| command.slot));
        }
        self.committer.scheduler.transactions.committed(count, took, handlers);
        if !lost.is_empty() {
            // Another process has the command, or the saga started compensating: the next claim reads it again.
            self.committer.scheduler.release(&lost).await;
        }
        if !locked.is_empty() {
            apart.push(SubBatch::of(locked));
        }
        apart
    }

    /// Takes note of whether a transaction got the semantic lock with which its saga begins, and of whether it waited for a lock.
    fn note_locks(&self, member: &BatchEntry<S>) {
        let Some(step) = member.locking_step else { return };
        let limits = &self.attempts.limits;
        let first = member.command.as_ref().and_then(|command| command.saga.definition.steps.first());
        if let (Some(InlineRequest::Start(_)), Some(first)) = (&member.inline, first) {
            limits.refused_starts.started(first.name, member.locks.lack_required());
        }
        if member.locks.have_waited() {
            limits.run_one_at_a_time(step);
        }
    }
}
