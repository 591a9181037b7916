//! What follows when a step transaction was not committed: whose fault it is, and which commands run again, with which others.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::batch::Batch;
use super::commit_failures::{Failures, OPERATION};
use super::entry::BatchEntry;
use super::worker::{SubBatch, Transactions};
use crate::engine::instance::{TakenWork, WorkItem, refs, takes_semantic_lock};
use crate::log;
use crate::store::{RetryClass, Store, StoreErrorKind, TransactError, WorkRef};

/// After this many lock conflicts of a command that runs alone, the next one counts as a failed attempt.
const CONFLICTS_MAX: u32 = 8;

/// Whether one command of a batch may have caused the error, so that the others should run without it.
fn is_of_one(error: &TransactError) -> bool {
    matches!(error.error.kind(), StoreErrorKind::Conflict | StoreErrorKind::Other | StoreErrorKind::Misuse)
}

fn in_halves<S: Store>(mut commands: Vec<WorkItem<S>>) -> impl Iterator<Item = Vec<WorkItem<S>>> {
    let second = commands.split_off(commands.len() / 2);
    [commands, second].into_iter()
}

/// Whether a repeated error counts as an attempt: a handler has run, or waiting does not help.
fn has_run_or_never_will<S: Store>(members: &[BatchEntry<S>], error: &TransactError) -> bool {
    members.iter().any(BatchEntry::has_run) || error.error.class() == RetryClass::Permanent
}

/// Whether a command that failed alone is to blame. It is not if the store is full or unavailable: then the worker waits.
fn is_own_fault(error: &TransactError, failures: u32) -> bool {
    match error.error.kind() {
        StoreErrorKind::Other | StoreErrorKind::Misuse => true,
        StoreErrorKind::Conflict => failures >= CONFLICTS_MAX,
        _ => false,
    }
}

impl<S: Store> Transactions<S> {
    /// Decides what follows from a failed commit: `waiting` gets the commands that run again.
    pub(super) async fn not_committed(
        self: &Arc<Self>,
        batch: &Batch<S>,
        error: &TransactError,
        failures: Failures,
        waiting: &mut Vec<SubBatch<S>>,
    ) {
        let blamed = batch.blamed(error.culprit);
        let mut members = batch.take();
        let batch_size = members.len();
        log::debug!(%error, count = members.len(), culprit = error.culprit, "step transaction not committed");
        if error.error.kind() == StoreErrorKind::Full {
            // No row can be written to say so, and the transaction is retried until there is room.
            self.ctx.health.store_failed(OPERATION, &error.error);
        }
        if error.error.class() == RetryClass::Unknown {
            self.ctx.health.store_failed(OPERATION, &error.error);
            for request in members.iter_mut().filter_map(|member| member.inline.take()) {
                request.answer(Err(&error.error));
            }
            return self.resolve_unknown_commit(members).await;
        }
        if batch.needs_savepoints(error) {
            // They run again as if nothing had happened: their steps may be chained.
            members.iter_mut().for_each(BatchEntry::start_over);
            let commands = members.into_iter().filter_map(BatchEntry::into_claimed).collect();
            return waiting.push(SubBatch { uses_own_savepoints: true, ..SubBatch::of(commands) });
        }
        if blamed.len() > 1 {
            return self.split_blamed(members, &blamed, waiting);
        }
        let is_of_steps = self.is_of_steps(&members, error, failures).await;
        let is_own = is_own_fault(error, failures.so_far) || is_of_steps && has_run_or_never_will(&members, error);
        let alone = (members.len() == 1 && is_own).then_some(0);
        let culprit = blamed.first().copied().or(alone);
        if error.error.kind() == StoreErrorKind::Conflict {
            self.count_conflict(&members);
        }
        if let Some(culprit) = culprit.filter(|&culprit| culprit < members.len()) {
            let member = members.remove(culprit);
            self.settle_culprit(member, batch_size, error, waiting).await;
        }
        // If the fault is not that of one member, what was to be committed with its step is committed by itself.
        let is_left = culprit.is_none() && (members.len() == 1 || !is_of_one(error));
        for member in members.extract_if(.., |member| is_left && member.inline.is_some()) {
            if let Some(request) = member.inline {
                request.leave();
            }
        }
        let has_chained = members.iter().any(BatchEntry::has_chained);
        let commands: Vec<_> = members.into_iter().filter_map(BatchEntry::into_claimed).collect();
        if commands.is_empty() {
            return;
        }
        if culprit.is_some() || (has_chained && commands.len() == 1 && is_of_one(error)) {
            return waiting.push(SubBatch::of(commands));
        }
        self.run_again(commands, error, failures, is_of_steps, waiting).await;
    }

    /// A member that waited only for the key of its saga met no locked rows.
    fn count_conflict(&self, members: &[BatchEntry<S>]) {
        let met = members.iter().filter(|member| member.inline.is_none() || member.has_run());
        let steps: BTreeSet<_> = met.filter_map(BatchEntry::step).collect();
        for step in steps {
            self.attempts.limits.met_lock(step);
        }
    }

    /// Records the failed attempt of the member that is to blame, or lets it run again alone first.
    async fn settle_culprit(
        self: &Arc<Self>,
        mut member: BatchEntry<S>,
        batch_size: usize,
        error: &TransactError,
        waiting: &mut Vec<SubBatch<S>>,
    ) {
        if let Some(request) = member.inline.take() {
            // Its caller commits the start or the decision by itself: then there is a row to record the failed attempt on.
            member.start_over();
            if let Some(command) = &member.command {
                self.attempts.limits.halve(command.step().name);
            }
            request.leave();
            member.command = None;
        }
        if member.command.as_ref().is_some_and(|command| takes_semantic_lock(command)) {
            // Taking a lock is no attempt that fails. It is asked for in a commit of its own.
            let asking = member.into_claimed().map(|command| WorkItem { asks_for_lock: true, ..command });
            return waiting.extend(asking.map(|command| SubBatch::of(vec![command])));
        }
        let has_only_claimed_step_run = member.chained.len() == 1 && member.attempted.is_none();
        if error.ended_transaction && has_only_claimed_step_run {
            member.start_over();
        }
        member.fail_with(&self.attempts, error);
        let is_last = batch_size > 1 && member.failed_last_attempt_in_batch(batch_size);
        // The earlier steps of a chained one are recorded first.
        if is_last || member.has_chained() {
            waiting.extend(member.into_claimed().map(|command| SubBatch::of(vec![command])));
        } else {
            Box::pin(self.record_culprit(member)).await;
        }
    }

    /// Runs commands again when none is known to be at fault: in halves if one of them may be, else after a pause.
    async fn run_again(
        &self,
        commands: Vec<WorkItem<S>>,
        error: &TransactError,
        failures: Failures,
        is_of_steps: bool,
        waiting: &mut Vec<SubBatch<S>>,
    ) {
        if commands.len() > 1 && is_of_steps {
            waiting.extend(
                in_halves(commands).map(|commands| SubBatch { failures: failures.so_far, ..SubBatch::of(commands) }),
            );
        } else if is_of_steps {
            // This worker is free for other commands.
            self.committer.scheduler.release(&refs(&commands)).await;
        } else if commands.len() > 1 && is_of_one(error) {
            if error.error.kind() != StoreErrorKind::Conflict {
                for command in &commands {
                    self.attempts.limits.halve(command.step().name);
                }
            }
            waiting.extend(in_halves(commands).map(SubBatch::of));
        } else {
            self.ctx.health.store_failed(OPERATION, &error.error);
            // The pause grows with these failures, even if the store works for other commands.
            self.committer.store_calls.pause_for_store(&mut self.committer.store_calls.backoff(failures.so_far)).await;
            if self.ctx.lifecycle.is_stopping() {
                self.committer.scheduler.release(&refs(&commands)).await;
            } else {
                waiting.push(SubBatch { failures: failures.so_far + 1, ..SubBatch::of(commands) });
            }
        }
    }

    /// A call of a batch step is to blame. Its commands run again in halves, until the culprit is alone.
    fn split_blamed(&self, members: Vec<BatchEntry<S>>, blamed: &[usize], waiting: &mut Vec<SubBatch<S>>) {
        self.attempts.statistics.count_split();
        let (mut of_call, mut others) = (Vec::new(), Vec::new());
        for (index, member) in members.into_iter().enumerate() {
            let commands = if blamed.contains(&index) { &mut of_call } else { &mut others };
            commands.extend(member.into_claimed());
        }
        waiting.extend(in_halves(of_call).chain([others]).filter(|part| !part.is_empty()).map(SubBatch::of));
    }

    /// Records the failed attempt of the member that is to blame.
    async fn record_culprit(self: &Arc<Self>, member: BatchEntry<S>) {
        let (Some(command), Some((attempted, next))) = (member.command, member.attempted) else { return };
        self.attempts.statistics.count(&command, &attempted.ending);
        self.records.record_attempt(*command, attempted, next, member.next_ids).await;
    }

    /// The store panicked, or the engine did when the store called it. Whether it was committed is not known. An attempt of each
    /// command is counted, so that one which causes the panic is not tried again without an end.
    pub(super) async fn transact_panicked(&self, members: Vec<BatchEntry<S>>, panic: &str) {
        self.ctx.lifecycle.has_panicked("transact", panic);
        let successors = members.iter().filter_map(|member| member.pending.as_ref()?.successor.as_ref());
        let successors: Vec<WorkRef> = successors.map(|successor| successor.work).collect();
        let mut taken = Vec::new();
        for mut member in members {
            match member.inline.take() {
                Some(request) => request.leave(),
                // A chained command still has the work row of its first step.
                None => taken.extend(member.into_claimed().as_ref().map(TakenWork::of)),
            }
        }
        self.committer.scheduler.release(&successors).await;
        self.committer.put_back(&taken, panic).await;
    }

    /// The outcome of the commit is unknown. Releasing its rows under their next epoch waits for that commit in the store. Rows that
    /// it did not finish are free then, and any process may claim them.
    async fn resolve_unknown_commit(&self, members: Vec<BatchEntry<S>>) {
        let successors = members.iter().filter_map(|member| member.pending.as_ref()?.successor.as_ref());
        let mut rows: Vec<WorkRef> = successors.map(|successor| successor.work).collect();
        rows.extend(members.iter().filter_map(BatchEntry::work));
        self.committer.scheduler.release(&rows).await;
    }
}
