//! The engine's side of a step transaction.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::attempt::Attempted;
use super::command::Command;
use super::prepared::Prepared;
use super::run_on::{RanBefore, RanStep};
use super::shared::Shared;
use super::starting::Starting;
use crate::env::BoxFuture;
use crate::machine::{Ending, Next};
use crate::store::{Advance, Changes, Claim, Condition, SagaRow, Status, Store, TransactionBody, Verdict};

/// Commands that share a transaction, with what became of them. The worker and the body that the store calls both hold
/// it, so that nothing is lost when the store drops the body.
pub(super) struct Batch<S: Store> {
    members: Mutex<Vec<Member<S>>>,
}

/// One command of a batch.
pub(super) struct Member<S: Store> {
    /// Taken out while its handler runs.
    pub(super) command: Option<Command<S>>,
    /// The id for the command that follows.
    pub(super) next_id: i64,
    pub(super) granted: bool,
    pub(super) attempted: Option<(Attempted, Next)>,
    pub(super) prepared: Option<Prepared<S>>,
    /// Set where the transaction starts the saga as well.
    pub(super) starting: Option<Box<Starting>>,
    /// The steps of the same saga that were done before the present one in this transaction.
    pub(super) ran: Vec<RanStep>,
    /// What they leave to be recorded.
    pub(super) before: Option<RanBefore<S>>,
}

pub(super) struct Body<S: Store> {
    shared: Arc<Shared<S>>,
    batch: Arc<Batch<S>>,
}

impl<S: Store> Batch<S> {
    pub(super) fn new(commands: Vec<Command<S>>, ids: impl Iterator<Item = i64>) -> Arc<Self> {
        let member = |(mut command, next_id): (Command<S>, i64)| Member {
            starting: command.starting.take(),
            command: Some(command),
            next_id,
            granted: false,
            attempted: None,
            prepared: None,
            ran: Vec::new(),
            before: None,
        };
        Arc::new(Self { members: Mutex::new(commands.into_iter().zip(ids).map(member).collect()) })
    }

    pub(super) fn claims(&self) -> Vec<Claim> {
        self.lock().iter().filter_map(Member::claim).collect()
    }

    pub(super) fn body(self: &Arc<Self>, shared: &Arc<Shared<S>>) -> Box<dyn TransactionBody<S::Conn>> {
        Box::new(Body { shared: Arc::clone(shared), batch: Arc::clone(self) })
    }

    /// What became of the commands.
    pub(super) fn take(&self) -> Vec<Member<S>> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Member<S>>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A command out of its batch; it goes back when it is dropped, whatever becomes of the handler.
struct Held<'a, S: Store> {
    batch: &'a Batch<S>,
    index: usize,
    command: Option<Command<S>>,
}

impl<S: Store> Drop for Held<'_, S> {
    fn drop(&mut self) {
        if let Some(member) = self.batch.lock().get_mut(self.index) {
            member.command = self.command.take();
        }
    }
}

impl<S: Store> Body<S> {
    async fn run_member(&self, index: usize, conn: &mut S::Conn) -> Verdict {
        let command = self.batch.lock().get_mut(index).and_then(|member| member.command.take());
        let held = Held { batch: &self.batch, index, command };
        let Some(command) = &held.command else { return Verdict::RollBack };
        let (attempted, verdict) = self.shared.attempt_in(command, conn).await;
        let next = self.shared.after(command, &attempted);
        drop(held);
        let mut members = self.batch.lock();
        let Some(member) = members.get_mut(index) else { return verdict };
        member.attempted = Some((attempted, next));
        member.run_on(&self.shared, verdict)
    }

    fn prepare_all(&self) -> Vec<Changes> {
        self.batch.lock().iter_mut().filter_map(|member| member.prepare(&self.shared)).collect()
    }
}

impl<S: Store> TransactionBody<S::Conn> for Body<S> {
    fn granted(&mut self, granted: &[bool]) {
        for (member, &granted) in self.batch.lock().iter_mut().zip(granted) {
            member.granted = granted;
            member.start_over();
        }
    }

    fn time_limit(&self, index: usize) -> Duration {
        let members = self.batch.lock();
        members.get(index).and_then(|member| member.command.as_ref()).map(Command::time_limit).unwrap_or_default()
    }

    fn run<'a>(&'a mut self, index: usize, conn: &'a mut S::Conn) -> BoxFuture<'a, Verdict> {
        Box::pin(self.run_member(index, conn))
    }

    fn changes(&mut self) -> Vec<Changes> {
        self.prepare_all()
    }

    fn decide_again(&mut self, moved: Vec<SagaRow>) -> Option<Vec<Changes>> {
        if self.batch.lock().iter().any(Member::is_decided) {
            // What ran on was decided on a saga that is not there any more. It runs again, step by step.
            return None;
        }
        let mut unreadable = Vec::new();
        {
            let mut members = self.batch.lock();
            members.iter_mut().for_each(|member| member.prepared = None);
            for row in moved {
                let command = members.iter_mut().filter_map(|member| member.command.as_mut());
                for command in command.filter(|command| command.saga.id == row.id) {
                    if let Err(problem) = command.saga.refresh(&row) {
                        unreadable.push(row.clone());
                        tracing::error!(key = %row.key, problem, "a saga became unreadable while its step ran");
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
    /// The step took effect and must be recorded, though the machine cannot say what follows: the saga is stuck.
    fn keep_unreadable(&self, row: &SagaRow) -> Option<Changes> {
        let mut members = self.batch.lock();
        let is_it = |member: &&mut Member<S>| member.command.as_ref().is_some_and(|command| command.saga.id == row.id);
        let member = members.iter_mut().find(is_it)?;
        let prepared = member.prepared.as_mut()?;
        (prepared.successor, prepared.outcome) = (None, None);
        let command = member.command.as_ref()?;
        Some(Changes {
            saga: Some(Advance { id: row.id, expected: row.version, status: Status::Stuck, state: row.state.clone() }),
            finished: vec![(command.work, Condition::Held)],
            ..Changes::default()
        })
    }
}

impl<S: Store> Member<S> {
    fn claim(&self) -> Option<Claim> {
        let start = self.starting.as_ref().map(|starting| Arc::clone(&starting.saga));
        self.command.as_ref().map(|command| Claim { start, ..command.claim() })
    }

    /// Says that the attempt ended otherwise than the handler let it look.
    pub(super) fn judge(&mut self, shared: &Shared<S>, ending: Ending) {
        let Some(command) = &self.command else { return };
        let mut findings = self.attempted.take().map(|(attempted, _)| attempted.findings).unwrap_or_default();
        (findings.output, findings.emitted) = (None, Vec::new());
        findings.attempts = command.attempt_number();
        let attempted = Attempted { ending, findings };
        let next = shared.after(command, &attempted);
        self.attempted = Some((attempted, next));
    }
}
