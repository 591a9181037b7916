//! Workers for the steps that run in a transaction.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;

use super::batch::Batch;
use super::commit_failures::{DOING, Failures};
use super::entry::BatchEntry;
use crate::engine::bulkhead::{Admission, ConcurrencyPermit, FairLane};
use crate::engine::commit::Committer;
use crate::engine::context::EngineContext;
use crate::engine::execute::attempt::Attempts;
use crate::engine::execute::lease::LeaseKeeper;
use crate::engine::execute::record::AttemptRecorder;
use crate::engine::instance::{TakenWork, WorkItem, refs};
use crate::log;
use crate::machine::Ending;
use crate::store::{RetryClass, Store, StoreErrorKind, TransactError, WorkRef};
use crate::unwind::caught_while;

/// How often one command alone may meet the locks of others before that counts as a failed attempt.
const CONFLICTS_MAX: u32 = 8;

/// Commands that are to share a transaction.
struct SubBatch<S: Store> {
    commands: Vec<WorkItem<S>>,
    /// How many commits in a row failed through no fault of their steps.
    failures: u32,
    /// Whether each handler is to have a savepoint of its own.
    is_careful: bool,
}

impl<S: Store> SubBatch<S> {
    pub(crate) fn of(commands: Vec<WorkItem<S>>) -> Self {
        Self { commands, failures: 0, is_careful: false }
    }
}

/// Whether one of a batch may have made it fail, so that the others do better without it.
fn is_of_one(error: &TransactError) -> bool {
    matches!(error.error.kind(), StoreErrorKind::Conflict | StoreErrorKind::Other | StoreErrorKind::Misuse)
}

fn in_halves<S: Store>(mut commands: Vec<WorkItem<S>>) -> impl Iterator<Item = Vec<WorkItem<S>>> {
    let second = commands.split_off(commands.len() / 2);
    [commands, second].into_iter()
}

/// Whether an attempt of these is to blame for what the store makes of it each time: one that never gets as far as its
/// handler counts only if waiting does not help.
fn has_run_or_never_will<S: Store>(members: &[BatchEntry<S>], error: &TransactError) -> bool {
    members.iter().any(BatchEntry::has_run) || error.error.class() == RetryClass::Permanent
}

/// Whether a command that failed alone is to blame. A store that is full or unavailable is not its fault: the worker
/// waits for it.
fn is_own_fault(error: &TransactError, failures: u32) -> bool {
    match error.error.kind() {
        StoreErrorKind::Other | StoreErrorKind::Misuse => true,
        StoreErrorKind::Conflict => failures >= CONFLICTS_MAX,
        _ => false,
    }
}

/// Runs the steps that run in a transaction, many in one where they may share it.
pub(crate) struct Transactions<S: Store> {
    pub(super) ctx: Arc<EngineContext<S>>,
    pub(super) committer: Arc<Committer<S>>,
    attempts: Arc<Attempts<S>>,
    leases: Arc<LeaseKeeper<S>>,
    records: Arc<AttemptRecorder<S>>,
}

impl<S: Store> Transactions<S> {
    pub(crate) fn new(
        attempts: Arc<Attempts<S>>,
        leases: Arc<LeaseKeeper<S>>,
        records: Arc<AttemptRecorder<S>>,
    ) -> Self {
        let (ctx, committer) = (Arc::clone(&records.ctx), Arc::clone(&records.committer));
        Self { ctx, committer, attempts, leases, records }
    }
}

impl<S: Store> Transactions<S> {
    /// Runs transactions until the queue is closed.
    pub(crate) async fn serve_transactions(self: Arc<Self>) {
        let workers = self.ctx.settings.transactions_max;
        let take = |lane: &mut _, taken: &mut _, share| self.pick_batch(lane, taken, share);
        while let Some(mut commands) =
            self.committer.scheduler.transactions.next_share(&*self.ctx.env, workers, take).await
        {
            let _under_way = self.ctx.lifecycle.enter();
            let taken: Vec<TakenWork> = commands.iter().map(TakenWork::of).collect();
            let first = commands.first_mut().and_then(WorkItem::take_line);
            let others: Vec<ConcurrencyPermit> = commands.iter_mut().filter_map(WorkItem::take_line).collect();
            self.committer.watch_over("transactions", &taken, pin!(self.run_transactions(commands))).await;
            drop((first, others));
            self.attempts.limits.leave_contended(taken.iter().map(|taken| taken.work.id));
            self.committer.scheduler.transactions.done(taken.len());
        }
    }

    /// Takes commands that may share a transaction: of one tenant, each of another saga, none past its step's limit,
    /// and no more than `share`. Commands of steps that met locks are passed over while others of these run, and are
    /// taken together beyond the share: no other worker may take them. A command whose limit is reached is passed
    /// over too.
    fn pick_batch(&self, lane: &mut FairLane<WorkItem<S>>, taken: &mut Vec<WorkItem<S>>, share: usize) {
        let is_contended = |command: &WorkItem<S>| self.attempts.limits.is_contended(command.step().name);
        let mut holds = taken.iter().any(is_contended);
        let mut place = 0;
        while let Some(command) = lane.get(place) {
            let is_contended = is_contended(command);
            let share = if is_contended { usize::MAX } else { share };
            let limit = if command.options().grouped { self.limit_of(command).min(share) } else { 1 };
            let fits = taken.is_empty()
                || taken.len() < limit
                    && taken.iter().all(|other| {
                        other.options().grouped
                            && other.saga.tenant == command.saga.tenant
                            && other.saga.id != command.saga.id
                    });
            if !fits {
                return;
            }
            if is_contended && !holds && !self.attempts.limits.enter_contended(command.work.id) {
                place += 1;
                continue;
            }
            let Admission::Runs(held) = self.line_among(command, taken) else {
                if is_contended && !holds {
                    self.attempts.limits.leave_contended(std::iter::once(command.work.id));
                }
                place += 1;
                continue;
            };
            holds |= is_contended;
            let alone = limit == 1;
            taken.extend(lane.remove(place).map(|command| command.with_line(held)));
            if alone {
                return;
            }
        }
    }

    /// The line of a command in the transaction of those that were taken, if it may run now. The first one has the line of
    /// the transaction; of the others only those need one that a limit counts, and of these the first of each step.
    fn line_among(&self, command: &WorkItem<S>, taken: &[WorkItem<S>]) -> Admission {
        let seat = self.committer.scheduler.seat_of(&command.saga, command.command);
        if taken.is_empty() {
            return Admission::on(self.committer.scheduler.bulkheads.try_line(seat));
        }
        let is_counted = |other: &WorkItem<S>| self.committer.scheduler.seat_of(&other.saga, other.command) == seat;
        if !self.committer.scheduler.bulkheads.is_limited(seat) || taken.iter().any(is_counted) {
            return Admission::Runs(None);
        }
        Admission::on(self.committer.scheduler.bulkheads.try_beside(seat))
    }

    /// With how many others the command may share a transaction, itself included.
    fn limit_of(&self, command: &WorkItem<S>) -> usize {
        let limit = self.attempts.limits.of(command.step().name);
        if command.is_batch() { limit } else { limit.min(self.attempts.limits.batch_max()) }
    }

    /// Runs commands to their end, in as many transactions as that takes.
    pub(crate) async fn run_transactions(self: &Arc<Self>, commands: Vec<WorkItem<S>>) {
        let mut waiting = vec![SubBatch::of(commands)];
        while let Some(SubBatch { commands, failures, is_careful }) = waiting.pop() {
            let commands = self.leases.hold_leases(commands).await;
            if commands.is_empty() {
                continue;
            }
            let widths = commands.iter().map(|command| command.saga.definition.width).sum();
            let Some(ids) = self.committer.store_calls.take_ids(widths).await else { return };
            let works_before = self.writes_without_steps(&commands, failures).await;
            let batch = Batch::new(commands, ids, is_careful);
            match caught_while(self.ctx.store.transact(batch.claims(), batch.body(&self.attempts))).await {
                Ok(Ok(())) => waiting.extend(self.committed(batch.take()).await),
                // It is large, and rarely needed.
                Ok(Err(error)) => {
                    let failures = Failures { so_far: failures, works_before };
                    Box::pin(self.not_committed(&batch, &error, failures, &mut waiting)).await;
                }
                Err(panic) => Box::pin(self.transact_panicked(batch.take(), &panic)).await,
            }
        }
    }

    /// What follows from a commit. Answers the commands that are to run again, each alone.
    async fn committed(self: &Arc<Self>, members: Vec<BatchEntry<S>>) -> Vec<SubBatch<S>> {
        self.ctx.health.store_works(DOING);
        let (mut lost, mut apart) = (Vec::new(), Vec::new());
        for member in members {
            let work = member.work();
            if member.reruns_alone {
                apart.extend(member.into_claimed().map(|command| SubBatch::of(vec![command])));
                continue;
            }
            let (Some(prepared), true) = (member.pending, member.granted) else {
                match member.inline_start {
                    Some(starting) => starting.leave(),
                    None => lost.extend(work),
                }
                continue;
            };
            for step in &member.chained {
                self.attempts.limits.was_done(step.name, step.is_undo, step.took);
                self.attempts.statistics.count_done(step.is_undo);
            }
            if let (Some(command), Some((attempted, _))) = (&member.command, &member.attempted) {
                let (step, took) = (command.step().name, attempted.findings.share);
                match attempted.ending {
                    Ending::Done => self.attempts.limits.was_done(step, command.is_undo(), took),
                    _ => self.attempts.limits.succeeded(step, took),
                }
                self.attempts.statistics.count(command, &attempted.ending);
            }
            if let Some(starting) = member.inline_start {
                self.attempts.statistics.count_start(true);
                starting.answer(Ok(()));
            }
            self.committer.after_commit(prepared, member.command.and_then(|command| command.slot));
        }
        if !lost.is_empty() {
            // Another process has it, or the saga started compensating: the next claim reads it again.
            self.committer.scheduler.release(&lost).await;
        }
        apart
    }

    async fn not_committed(
        self: &Arc<Self>,
        batch: &Batch<S>,
        error: &TransactError,
        failures: Failures,
        waiting: &mut Vec<SubBatch<S>>,
    ) {
        let blamed = batch.blamed(error.culprit);
        let mut members = batch.take();
        let company = members.len();
        log::debug!(%error, count = members.len(), culprit = error.culprit, "step transaction not committed");
        if error.error.kind() == StoreErrorKind::Full {
            // No row of it can say so, and it is retried for as long as that takes.
            self.ctx.health.store_failed(DOING, &error.error);
        }
        if error.error.class() == RetryClass::Unknown {
            self.ctx.health.store_failed(DOING, &error.error);
            for starting in members.iter_mut().filter_map(|member| member.inline_start.take()) {
                starting.answer(Err(&error.error));
            }
            return self.resolve_unknown_commit(members).await;
        }
        if batch.takes_care(error) {
            let commands = members.into_iter().filter_map(BatchEntry::into_started_over).collect();
            return waiting.push(SubBatch { is_careful: true, ..SubBatch::of(commands) });
        }
        if blamed.len() > 1 {
            return self.split_blamed(members, &blamed, waiting);
        }
        let is_of_steps = self.is_of_steps(&members, error, failures).await;
        let is_own = is_own_fault(error, failures.so_far) || is_of_steps && has_run_or_never_will(&members, error);
        let alone = (members.len() == 1 && is_own).then_some(0);
        let culprit = blamed.first().copied().or(alone);
        if error.error.kind() == StoreErrorKind::Conflict {
            // A member that only waited for the key of its saga met no locked rows.
            let met = members.iter().filter(|member| member.inline_start.is_none() || member.has_run());
            let steps: BTreeSet<_> = met.filter_map(BatchEntry::step).collect();
            for step in steps {
                self.attempts.limits.met_lock(step);
            }
        }
        if let Some(culprit) = culprit.filter(|&culprit| culprit < members.len()) {
            let mut member = members.remove(culprit);
            if let Some(starting) = member.inline_start.take() {
                // Started by itself, it meets the same again, with a row that its attempt is recorded on.
                member.start_over();
                if let Some(command) = &member.command {
                    self.attempts.limits.halve(command.step().name);
                }
                starting.leave();
                member.command = None;
            }
            if error.ended_transaction && member.has_only_claimed_step_run() {
                member.start_over();
            }
            member.judge_failed(&self.attempts, error);
            if company > 1 && !member.has_chained() && member.failed_in_company(company) {
                waiting.extend(member.into_claimed().map(|command| SubBatch::of(vec![command])));
            } else if member.has_chained() {
                // Its saga's earlier steps are to be recorded first.
                waiting.extend(member.into_claimed().map(|command| SubBatch::of(vec![command])));
            } else {
                Box::pin(self.record_culprit(member)).await;
            }
        }
        // What is not of one of several is told to who starts the saga.
        let is_left = culprit.is_none() && (members.len() == 1 || !is_of_one(error));
        for member in members.extract_if(.., |member| is_left && member.inline_start.is_some()) {
            if let Some(starting) = member.inline_start {
                starting.leave();
            }
        }
        let ran_on = members.iter().any(BatchEntry::has_chained);
        let commands: Vec<_> = members.into_iter().filter_map(BatchEntry::into_claimed).collect();
        if commands.is_empty() {
            return;
        }
        if culprit.is_some() || (ran_on && commands.len() == 1 && is_of_one(error)) {
            waiting.push(SubBatch::of(commands));
        } else if commands.len() > 1 && is_of_steps {
            waiting.extend(
                in_halves(commands).map(|commands| SubBatch { failures: failures.so_far, ..SubBatch::of(commands) }),
            );
        } else if is_of_steps {
            // The worker is needed by others.
            self.committer.scheduler.release(&refs(&commands)).await;
        } else if commands.len() > 1 && is_of_one(error) {
            if error.error.kind() != StoreErrorKind::Conflict {
                for command in &commands {
                    self.attempts.limits.halve(command.step().name);
                }
            }
            waiting.extend(in_halves(commands).map(SubBatch::of));
        } else {
            self.ctx.health.store_failed(DOING, &error.error);
            // That the store works for others makes this failure no smaller.
            self.committer.store_calls.pause_for_store(&mut self.committer.store_calls.backoff(failures.so_far)).await;
            if self.ctx.lifecycle.is_stopping() {
                self.committer.scheduler.release(&refs(&commands)).await;
            } else {
                waiting.push(SubBatch { failures: failures.so_far + 1, ..SubBatch::of(commands) });
            }
        }
    }

    /// The call of a batch step is to blame. Its commands run again in halves, until the one is alone whose fault it is.
    fn split_blamed(&self, members: Vec<BatchEntry<S>>, blamed: &[usize], waiting: &mut Vec<SubBatch<S>>) {
        self.attempts.statistics.count_split();
        let (mut of_call, mut others) = (Vec::new(), Vec::new());
        for (index, member) in members.into_iter().enumerate() {
            let commands = if blamed.contains(&index) { &mut of_call } else { &mut others };
            commands.extend(member.into_claimed());
        }
        waiting.extend(in_halves(of_call).chain([others]).filter(|part| !part.is_empty()).map(SubBatch::of));
    }

    /// The handler is to blame: its attempt is recorded on its own.
    async fn record_culprit(self: &Arc<Self>, member: BatchEntry<S>) {
        let (Some(command), Some((attempted, next))) = (member.command, member.attempted) else { return };
        self.attempts.statistics.count(&command, &attempted.ending);
        self.records.record_attempt(*command, attempted, next, member.next_ids).await;
    }

    /// The store panicked, or the engine where the store called it. Whether it was committed is not known, and an attempt of
    /// each is counted, so that one that makes the store panic each time is not tried for ever at once.
    async fn transact_panicked(&self, members: Vec<BatchEntry<S>>, panic: &str) {
        self.ctx.lifecycle.has_panicked("transact", panic);
        let successors = members.iter().filter_map(|member| member.pending.as_ref()?.successor.as_ref());
        let successors: Vec<WorkRef> = successors.map(|successor| successor.work).collect();
        let mut taken = Vec::new();
        for mut member in members {
            match member.inline_start.take() {
                Some(starting) => starting.leave(),
                // A saga that ran on has the row of the step that it began with.
                None => taken.extend(member.into_claimed().as_ref().map(TakenWork::of)),
            }
        }
        self.committer.scheduler.release(&successors).await;
        self.committer.put_back(&taken, panic).await;
    }

    /// The commit is in doubt. Its rows are taken under their next epoch, which waits for it: those that can be taken
    /// were not finished by it. Whatever it left behind is free then, for anybody to claim.
    async fn resolve_unknown_commit(&self, members: Vec<BatchEntry<S>>) {
        let successors = members.iter().filter_map(|member| member.pending.as_ref()?.successor.as_ref());
        let mut rows: Vec<WorkRef> = successors.map(|successor| successor.work).collect();
        rows.extend(members.iter().filter_map(BatchEntry::work));
        self.committer.scheduler.release(&rows).await;
    }
}
