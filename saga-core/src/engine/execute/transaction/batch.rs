//! The body of a step transaction: the store calls it once per command, and takes the changes to commit from it.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::call_plan::{CallPlan, HandlerCall, is_same_step};
use super::entry::BatchEntry;
use super::one_call::call_one;
use super::rerun_policy::RerunPolicy;
use super::savepoints::{EndedAttempt, Savepoints};
use crate::engine::commit::changes;
use crate::engine::execute::attempt::{Attempts, BatchAttempt};
use crate::engine::instance::{AttemptResult, WorkItem, takes_semantic_lock};
use crate::engine::queue::Protection;
use crate::env::BoxFuture;
use crate::log;
use crate::store::{
    Changes, Claim, HandlerVerdict, MovedSaga, SagaId, SagaRow, Store, TakenLock, TransactError, TransactionBody,
};

/// Commands that share a transaction, with their results. The worker and the body share it, so that nothing is lost when the store
/// drops the body.
pub(crate) struct Batch<S: Store> {
    held: Mutex<Held<S>>,
}

struct Held<S: Store> {
    members: Vec<BatchEntry<S>>,
    plan: CallPlan,
    savepoints: Savepoints,
    /// Whether each handler gets its own savepoint.
    uses_own_savepoints: bool,
    rerun: RerunPolicy,
}

pub(crate) struct Body<S: Store> {
    attempts: Arc<Attempts<S>>,
    batch: Arc<Batch<S>>,
}

impl<S: Store> Batch<S> {
    /// `uses_own_savepoints`: each handler gets its own savepoint.
    pub(crate) fn new(mut commands: Vec<WorkItem<S>>, mut ids: Range<i64>, uses_own_savepoints: bool) -> Arc<Self> {
        // A command that failed before needs its own savepoint. At the end of the batch it separates no others.
        commands.sort_by_key(|command| command.attempts > 0);
        let member = |command: WorkItem<S>| {
            let next_ids = ids.start;
            ids.start += i64::try_from(command.saga.definition.width).unwrap_or(i64::MAX);
            BatchEntry::new(command, next_ids)
        };
        let members = commands.into_iter().map(member).collect();
        let (plan, savepoints, rerun) = Default::default();
        Arc::new(Self { held: Mutex::new(Held { members, plan, savepoints, uses_own_savepoints, rerun }) })
    }

    pub(crate) fn claims(&self) -> Vec<Claim> {
        self.lock().members.iter().filter_map(BatchEntry::claim).collect()
    }

    pub(crate) fn body(self: &Arc<Self>, attempts: &Arc<Attempts<S>>) -> Box<dyn TransactionBody<S::Conn>> {
        Box::new(Body { attempts: Arc::clone(attempts), batch: Arc::clone(self) })
    }

    /// Takes the commands with their results.
    pub(crate) fn take(&self) -> Vec<BatchEntry<S>> {
        std::mem::take(&mut self.lock().members)
    }

    /// Whether the batch runs again with a savepoint for each handler.
    pub(crate) fn needs_savepoints(&self, error: &TransactError) -> bool {
        self.lock().rerun.needs_savepoints(error)
    }

    /// The members to blame if the store blames one: all members of the latest call.
    pub(crate) fn blamed(&self, culprit: Option<usize>) -> Vec<usize> {
        let held = self.lock();
        match (culprit, held.plan.latest()) {
            (None, _) => Vec::new(),
            (Some(culprit), []) => vec![culprit],
            (Some(_), latest) => latest.to_vec(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Held<S>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Commands that were taken out of their batch for a handler. They go back when this is dropped, also if the handler panics.
struct BorrowedCommands<'a, S: Store> {
    batch: &'a Batch<S>,
    call: HandlerCall,
    /// Of an ordinary step.
    one: Option<Box<WorkItem<S>>>,
    /// Of a batch step.
    #[expect(clippy::vec_box, reason = "they go back to their batch in the boxes that they came in")]
    many: Vec<Box<WorkItem<S>>>,
}

impl<'a, S: Store> BorrowedCommands<'a, S> {
    fn of_next(batch: &'a Batch<S>, index: usize) -> Self {
        let Held { members, plan, .. } = &mut *batch.lock();
        let call = plan.take_next(members, index);
        let mut take = |index: &usize| members.get_mut(*index).and_then(|member| member.command.take());
        let (one, many) = match &call {
            HandlerCall::One(index) => (take(index), Vec::new()),
            HandlerCall::Many(indexes) => (None, indexes.iter().filter_map(take).collect()),
        };
        Self { batch, call, one, many }
    }
}

impl<S: Store> Drop for BorrowedCommands<'_, S> {
    fn drop(&mut self) {
        let mut held = self.batch.lock();
        let commands = self.one.take().into_iter().chain(self.many.drain(..));
        for (index, command) in self.call.members().iter().zip(commands) {
            if let Some(member) = held.members.get_mut(*index) {
                member.command = Some(command);
            }
        }
    }
}

impl<S: Store> Body<S> {
    async fn run_next(&self, index: usize, conn: &mut S::Conn) -> HandlerVerdict {
        let borrowed = BorrowedCommands::of_next(&self.batch, index);
        let verdict = match (&borrowed.one, &borrowed.call) {
            (Some(command), HandlerCall::One(index)) => {
                let (ended, verdict) = call_one(&self.attempts, command, conn).await;
                let attempt = (*index, ended);
                drop(borrowed);
                self.ended(attempt, verdict)
            }
            _ if borrowed.many.is_empty() => return HandlerVerdict::RollBack,
            _ => self.run_batch_step(borrowed, conn).await,
        };
        let has_more = {
            let Held { plan, rerun, .. } = &mut *self.batch.lock();
            rerun.count_call(verdict);
            plan.has_more()
        };
        match verdict {
            HandlerVerdict::Keep if has_more => HandlerVerdict::KeepAndContinue,
            HandlerVerdict::RollBack if has_more => HandlerVerdict::UndoAndContinue,
            verdict => verdict,
        }
    }

    async fn run_batch_step(&self, borrowed: BorrowedCommands<'_, S>, conn: &mut S::Conn) -> HandlerVerdict {
        let commands: Vec<&WorkItem<S>> = borrowed.many.iter().map(AsRef::as_ref).collect();
        self.attempts.statistics.count_batch(commands.len());
        let attempt = self.attempts.attempt_batch_in(&commands, conn).await;
        let call = borrowed.call.clone();
        let (ended, verdict) = match attempt {
            BatchAttempt::Each(each) => (each, HandlerVerdict::Keep),
            BatchAttempt::Alone(attempted, verdict) => (vec![attempted], verdict),
            BatchAttempt::Whole(HandlerVerdict::RollBack) => {
                drop(borrowed);
                return self.split(&call, call.halves().into_iter());
            }
            BatchAttempt::Whole(verdict) => return verdict,
            BatchAttempt::Apart(apart) => {
                drop(borrowed);
                let with_place = call.members().iter().copied().enumerate();
                let (alone, rest): (Vec<_>, Vec<_>) = with_place.partition(|(place, _)| apart.contains(place));
                let rest = HandlerCall::Many(rest.into_iter().map(|(_, index)| index).collect());
                let alone = alone.into_iter().map(|(_, index)| HandlerCall::Many(vec![index]));
                return self.split(&call, std::iter::once(rest).chain(alone));
            }
        };
        let with_next = |(command, attempted): (&&WorkItem<S>, AttemptResult)| {
            let next = self.attempts.decider.after(command, &attempted);
            (attempted, next)
        };
        let ended: Vec<_> = commands.iter().zip(ended).map(with_next).collect();
        drop(borrowed);
        let held = &mut *self.batch.lock();
        if verdict == HandlerVerdict::RollBack {
            held.count_failure(&self.attempts, call.members());
            if held.savepoints.has_none() {
                return held.rerun.run_again();
            }
        }
        for attempt in call.members().iter().copied().zip(ended) {
            held.settle(&self.attempts, attempt, verdict);
        }
        verdict
    }

    fn split(&self, call: &HandlerCall, parts: impl DoubleEndedIterator<Item = HandlerCall>) -> HandlerVerdict {
        let mut held = self.batch.lock();
        held.count_failure(&self.attempts, call.members());
        if held.savepoints.has_none() {
            return held.rerun.run_again();
        }
        self.attempts.statistics.count_split();
        held.plan.put_first(parts);
        HandlerVerdict::RollBack
    }

    /// Handles the end of an attempt: its saga continues in this transaction, or waits for the commit.
    fn ended(&self, attempt: EndedAttempt, verdict: HandlerVerdict) -> HandlerVerdict {
        let held = &mut *self.batch.lock();
        match verdict {
            HandlerVerdict::Keep => {
                if let Some(attempt) = held.savepoints.keep(attempt) {
                    held.settle(&self.attempts, attempt, verdict);
                } else if !held.is_joined(&self.attempts) {
                    for attempt in held.savepoints.close() {
                        held.settle(&self.attempts, attempt, verdict);
                    }
                }
            }
            HandlerVerdict::RollBack => {
                held.count_failure(&self.attempts, &[attempt.0]);
                if held.savepoints.has_none() {
                    return held.rerun.run_again();
                }
                held.settle(&self.attempts, attempt, verdict);
                let again = held.savepoints.roll_back();
                held.plan.put_first(again.into_iter().map(|(index, _)| HandlerCall::One(index)));
            }
            _ => held.settle(&self.attempts, attempt, verdict),
        }
        verdict
    }

    fn prepare_all(&self) -> Vec<Changes> {
        let members = &mut self.batch.lock().members;
        // A saga with branches often moves before the commit. Then only its own changes are prepared again.
        let has_branches =
            |member: &BatchEntry<S>| member.command.as_ref().is_some_and(|command| command.saga.definition.width > 1);
        let keeps = members.iter().any(has_branches);
        let prepare = |member: &mut BatchEntry<S>| {
            if member.prepared_changes.is_some() {
                return member.prepared_changes.as_deref().cloned();
            }
            let changes = member.prepare(&self.attempts)?;
            member.prepared_changes = keeps.then(|| Box::new(changes.clone()));
            Some(changes)
        };
        members.iter_mut().filter_map(prepare).collect()
    }
}

impl<S: Store> TransactionBody<S::Conn> for Body<S> {
    fn granted(&mut self, granted: &[bool]) {
        let mut held = self.batch.lock();
        (held.plan, held.savepoints, held.rerun) =
            (CallPlan::of_granted(granted), Savepoints::default(), RerunPolicy::default());
        for (member, &granted) in held.members.iter_mut().zip(granted) {
            member.granted = granted;
            member.start_over();
        }
    }

    fn locked(&mut self, index: usize, taken: Vec<Option<TakenLock>>) {
        if let Some(member) = self.batch.lock().members.get_mut(index) {
            member.take_locks(taken);
        }
    }

    fn time_limit(&self, index: usize) -> Duration {
        let held = self.batch.lock();
        let index = held.plan.next_member(&held.members, index);
        let command = held.members.get(index).and_then(|member| member.command.as_deref());
        command.map(WorkItem::time_limit).unwrap_or_default()
    }

    fn needs_savepoint(&mut self, index: usize) -> bool {
        let held = &mut *self.batch.lock();
        let next = held.plan.next_member(&held.members, index);
        let protection = held.protection_of(&self.attempts, next);
        let is_needed = held.savepoints.before(protection);
        if !is_needed {
            held.rerun.omits_savepoint();
        }
        is_needed
    }

    fn run<'a>(&'a mut self, index: usize, conn: &'a mut S::Conn) -> BoxFuture<'a, HandlerVerdict> {
        Box::pin(self.run_next(index, conn))
    }

    fn has_run(&self, index: usize) -> bool {
        self.batch.lock().plan.has_begun(index)
    }

    fn changes(&mut self) -> Vec<Changes> {
        self.prepare_all()
    }

    fn decide_again(&mut self, moved: Vec<MovedSaga>) -> Option<Vec<Changes>> {
        let has_moved = |member: &BatchEntry<S>| moved.iter().any(|moved| is_of(member, moved.saga.id));
        let is_void =
            |member: &BatchEntry<S>| member.is_decided() && (member.prepared_changes.is_none() || has_moved(member));
        if self.batch.lock().members.iter().any(is_void) {
            // Chained steps were decided on a state that has changed. They run again one by one.
            return None;
        }
        let mut unreadable = Vec::new();
        {
            let members = &mut self.batch.lock().members;
            for member in members.iter_mut().filter(|member| member.prepared_changes.is_none() || has_moved(member)) {
                (member.pending, member.prepared_changes) = (None, None);
            }
            for MovedSaga { saga: row, records } in &moved {
                let command = members.iter_mut().filter_map(|member| member.command.as_mut());
                for command in command.filter(|command| command.saga.id == row.id) {
                    if let Err(problem) = command.saga.refresh(row, records.clone()) {
                        unreadable.push(row.clone());
                        let (tenant, saga, definition) = (row.tenant.as_str(), &row.key, &row.definition);
                        log::error!(tenant, %saga, %definition, error = problem, "saga unreadable");
                    }
                }
            }
        }
        let mut all = self.prepare_all();
        for row in unreadable {
            all.retain(|changes| changes.saga.as_ref().is_none_or(|advance| advance.id != row.id));
            all.extend(self.keep_unreadable(&row));
        }
        Some(all)
    }
}

impl<S: Store> Body<S> {
    /// The saga became unreadable while its step took effect: its work row is finished, and the saga becomes stuck.
    fn keep_unreadable(&self, row: &SagaRow) -> Option<Changes> {
        let members = &mut self.batch.lock().members;
        let member = members.iter_mut().find(|member| is_of(member, row.id))?;
        let prepared = member.pending.as_mut()?;
        (prepared.successor, prepared.outcome) = (None, None);
        let command = member.command.as_ref()?;
        Some(changes::block_saga(row, Some(command.work)))
    }
}

fn is_of<S: Store>(member: &BatchEntry<S>, saga: SagaId) -> bool {
    member.command.as_ref().is_some_and(|command| command.saga.id == saga)
}

impl<S: Store> Held<S> {
    fn protection_of(&self, attempts: &Attempts<S>, index: usize) -> Protection {
        let Some(command) = self.members.get(index).and_then(|member| member.command.as_ref()) else {
            return Protection::Own;
        };
        if takes_semantic_lock(command) {
            // It calls nothing that may fail.
            return Protection::Spared;
        }
        if command.attempts > 0 || command.recovered || self.uses_own_savepoints {
            return Protection::Own;
        }
        match attempts.limits.protection_of(command.step().name, command.is_undo()) {
            // The members of one call share a savepoint in any case.
            Protection::Shared(_) if command.is_batch() => Protection::Own,
            protection => protection,
        }
    }

    /// Whether the next call shares the savepoint of the latest one.
    fn is_joined(&self, attempts: &Attempts<S>) -> bool {
        let command_of = |index: usize| self.members.get(index)?.command.as_ref();
        let latest = self.savepoints.open().and_then(|ended| command_of(ended.first()?.0));
        let Some((latest, next)) = latest.zip(self.plan.following_member(&self.members)) else { return false };
        command_of(next).is_some_and(|command| is_same_step(command, latest))
            && matches!(self.protection_of(attempts, next), Protection::Shared(_))
    }

    /// A call for these members failed. A first attempt counts in the failure rate of the step.
    fn count_failure(&self, attempts: &Attempts<S>, members: &[usize]) {
        let command = members.first().and_then(|index| self.members.get(*index)?.command.as_ref());
        if let Some(command) = command.filter(|command| command.attempts == 0) {
            attempts.limits.failed(command.step().name, command.is_undo());
        }
    }

    fn settle(&mut self, attempts: &Attempts<S>, (index, attempted): EndedAttempt, verdict: HandlerVerdict) {
        let batch_size = self.members.len();
        let Some(member) = self.members.get_mut(index) else { return };
        member.attempted = Some(attempted);
        if verdict == HandlerVerdict::RollBack && member.failed_last_attempt_in_batch(batch_size) {
            member.discount_attempt();
        } else if member.chain(attempts, verdict, batch_size) {
            self.plan.add_chained(index);
        }
    }
}
