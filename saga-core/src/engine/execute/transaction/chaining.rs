//! Consecutive steps of one saga in one transaction.
//!
//! A transactional step is usually followed by another one. That step need not wait for the commit, nor for a work row that would
//! be inserted, claimed and deleted: it runs on the same connection, and the saga advances once for all of them. No guarantee is
//! weaker: without the commit nothing happened, and the steps run again. If the commit fails, they run again one by one.

use std::time::Duration;

use super::chained_steps::{ChainedStep, ChainedSteps};
use super::entry::BatchEntry;
use crate::engine::decide::finished_by;
use crate::engine::execute::attempt::Attempts;
use crate::engine::instance::{
    AttemptDetails, InlineRequest, NextSlot, NextWork, PendingCommit, SendVia, WorkItem, takes_semantic_lock,
};
use crate::engine::queue::SLOW;
use crate::machine::{Effect, Ending, Next};
use crate::store::{
    Advance, Changes, HandlerVerdict, HistoryEntry, HistoryKind, NewWork, Store, TakenLock, Tried, WorkRef,
};

impl<S: Store> BatchEntry<S> {
    /// The transaction has these locks.
    pub(crate) fn take_locks(&mut self, taken: Vec<Option<TakenLock>>) {
        self.locks.set(taken);
        if let (Some(command), Some(locked)) = (&mut self.command, self.locks.of_claimed()) {
            command.locked = locked;
        }
    }

    /// Whether the saga continues in this transaction: then its next step has replaced the one that ended. `batch_size` is how many
    /// commands share the transaction.
    pub(crate) fn chain(&mut self, attempts: &Attempts<S>, verdict: HandlerVerdict, batch_size: usize) -> bool {
        verdict == HandlerVerdict::Keep && self.may_chain(attempts) && self.chain_next(attempts, batch_size)
    }

    /// The changes to record for all steps that ran.
    pub(crate) fn prepare(&mut self, attempts: &Attempts<S>) -> Option<Changes> {
        let (command, (attempted, next)) = (self.command.as_ref()?, self.attempted.as_ref()?);
        if let (Next::Again { delay, message, .. }, true) =
            (next, self.chained_changes.is_some() || self.inline.is_some())
        {
            // Its work row does not exist yet. It is written now, with this attempt counted.
            let tried = Tried { attempts: attempted.findings.attempts, error: message.clone() };
            attempts.statistics.count(command, &attempted.ending);
            return self.leave_present_step(*delay, tried, attempts.decider.send_via());
        }
        let mut prepared = self.pending.take().unwrap_or_else(|| {
            let next_work = NextWork { ids: self.next_ids, slot: NextSlot::after(command) };
            self.decide(attempts, command, next, &attempted.findings, next_work)
        });
        if let Some(before) = &mut self.chained_changes {
            prepared.changes = joined(std::mem::take(&mut before.changes), std::mem::take(&mut prepared.changes));
            if let Some(successor) = &mut prepared.successor {
                // The saga advances once.
                successor.saga.version = before.claimed.saga.version + 1;
            }
        }
        if let Some(decided) = self.decided_before() {
            prepared.changes = joined(decided, std::mem::take(&mut prepared.changes));
        }
        self.settle_locks(&mut prepared.changes);
        let changes = prepared.take_changes();
        self.pending = Some(prepared);
        Some(changes)
    }

    /// Says which of the locks that the transaction took outlast it, and leaves out the ends of the others.
    fn settle_locks(&self, changes: &mut Changes) {
        if !self.locks.are_wanted() {
            return;
        }
        changes.locked = self.locks.kept(&changes.unlocked);
        let starts = matches!(self.inline, Some(InlineRequest::Start(_)));
        changes.unlocked.retain(|unlock| !self.locks.end_by_themselves(unlock, starts));
    }

    /// The changes of the decision that is recorded together with the steps.
    fn decided_before(&self) -> Option<Changes> {
        self.inline.as_ref()?.changes()
    }

    /// The work row that was claimed.
    pub(crate) fn work(&self) -> Option<WorkRef> {
        self.chained_changes.as_ref().map(|before| before.claimed.work).or_else(|| Some(self.command.as_ref()?.work))
    }

    /// The step that is to run, or ran last.
    pub(crate) fn step(&self) -> Option<&'static str> {
        self.command.as_ref().map(|command| command.step().name)
    }

    /// Whether more than one step of the saga ran.
    pub(crate) fn has_chained(&self) -> bool {
        !self.chained.is_empty()
    }

    /// Whether decisions were already made for it, so that it cannot be decided again.
    pub(crate) fn is_decided(&self) -> bool {
        let is_inline =
            |request: &InlineRequest| matches!(request, InlineRequest::Decision(_)) || self.command.is_none();
        self.has_chained() || self.inline.as_ref().is_some_and(is_inline)
    }

    /// Forgets what ran: the claimed step is the present one again.
    pub(crate) fn start_over(&mut self) {
        (self.attempted, self.pending, self.prepared_changes) = (None, None, None);
        self.reruns_alone = false;
        self.chained.clear();
        if let Some(before) = self.chained_changes.take() {
            let slot = self.command.take().and_then(|command| command.slot);
            let mut claimed = before.claimed;
            claimed.slot = slot;
            self.command = Some(claimed);
        }
        if let Some(command) = self.command.as_mut().filter(|_| self.locks.are_wanted()) {
            // The next transaction takes them again.
            command.locked.clear();
        }
    }

    /// The claimed command, to run again. If its steps were chained, they run one by one now.
    pub(crate) fn into_claimed(mut self) -> Option<WorkItem<S>> {
        let has_chained = self.has_chained();
        self.start_over();
        let inline = self.inline.take();
        let command = *self.command?;
        Some(WorkItem { chains: command.chains && !has_chained, inline, ..command })
    }

    /// Whether the present step has a work row. A chained step has none, nor has a step whose saga, or whose decision, this
    /// transaction commits as well.
    fn has_row(&self) -> bool {
        self.inline.is_none() && self.chained_changes.is_none()
    }

    fn may_chain(&self, attempts: &Attempts<S>) -> bool {
        let Some((attempted, Next::Settled(_))) = &self.attempted else { return false };
        let Some(command) = self.command.as_ref().filter(|command| command.chains && !command.recovered) else {
            return false;
        };
        let took = attempted.findings.share + self.chained.iter().map(|step| step.took).sum::<Duration>();
        attempted.ending == Ending::Done
            && self.chained.iter().filter(|step| !step.is_lock).count() + 1
                < attempts.ctx.settings.steps_per_transaction_max
            && took <= SLOW
            && attempts.joins_others(command)
    }

    /// Replaces the step that was done by the next one of the saga, if that can run in this transaction.
    fn chain_next(&mut self, attempts: &Attempts<S>, batch_size: usize) -> bool {
        let has_row = self.has_row();
        let locks = &self.locks;
        let (Some(command), Some((attempted, next))) = (&mut self.command, &self.attempted) else { return false };
        let next_work = NextWork { ids: self.next_ids, slot: NextSlot::after(command) };
        // Only the claimed step may run again, so the saga of a chained one can be moved.
        let saga = if self.chained_changes.is_some() { command.saga.take() } else { command.saga.clone() };
        let mut prepared = attempts.decider.decide_attempt_on(command, saga, next, &attempted.findings, next_work);
        prepared.changes.finished.extend(finished_by(command, next).filter(|_| has_row));
        // Each handler of an ordinary step may need a savepoint, and a transaction can have `batch_max` of them.
        let has_room = |next: &WorkItem<S>| next.is_batch() || batch_size <= attempts.limits.batch_max();
        // A command with its own slot counts against another limit, and waits for a worker.
        let fits = |next: &WorkItem<S>| {
            next.effect() == Effect::Transactional
                && locks.of_next(next).is_some()
                && next.slot.is_none()
                && attempts.joins_others(next)
                && has_room(next)
        };
        // Another branch is likely to move the saga before this transaction commits.
        let is_alone = |next: &WorkItem<S>| next.saga.definition.width == 1 || next.saga.state.under_way() == 1;
        let fits = |next: &WorkItem<S>| fits(next) && is_alone(next);
        if prepared.changes.commands.len() != 1 || !prepared.successor.as_deref().is_some_and(fits) {
            self.pending = Some(prepared);
            return false;
        }
        let (Some(mut successor), Some(row)) = (prepared.successor.take(), prepared.changes.commands.pop()) else {
            return false;
        };
        let (Some(mut command), Some((attempted, _))) = (self.command.take(), self.attempted.take()) else {
            return false;
        };
        let (name, is_undo, took) = (command.step().name, command.is_undo(), attempted.findings.share);
        let ran = ChainedStep { name, is_undo, took, is_lock: takes_semantic_lock(&command) };
        self.chained.push(ran);
        successor.slot = command.slot.take();
        successor.locked = self.locks.of_next(&successor).unwrap_or_default();
        let before = match self.chained_changes.take() {
            None => ChainedSteps { changes: prepared.changes, row, claimed: command },
            Some(mut before) => {
                before.changes = joined(before.changes, prepared.changes);
                ChainedSteps { row, ..before }
            }
        };
        // The saga advances once, from the version that was claimed.
        successor.saga.version = before.claimed.saga.version;
        (self.command, self.chained_changes) = (Some(successor), Some(before));
        true
    }

    /// The decision that follows from the attempt.
    fn decide(
        &self,
        attempts: &Attempts<S>,
        command: &WorkItem<S>,
        next: &Next,
        findings: &AttemptDetails,
        next_work: NextWork,
    ) -> PendingCommit<S> {
        let mut prepared = attempts.decider.decide_attempt_on(command, command.saga.clone(), next, findings, next_work);
        prepared.changes.finished.extend(finished_by(command, next).filter(|_| self.has_row()));
        prepared
    }

    /// Records the steps that were done, and writes the work row of the present step, which failed and is retried later.
    fn leave_present_step(&mut self, due_in: Duration, tried: Tried, send_via: SendVia) -> Option<Changes> {
        let present = self.command.take()?;
        self.attempted = None;
        let failed = HistoryEntry {
            saga: present.saga.id,
            step: Some(present.step_id()),
            kind: HistoryKind::AttemptFailed,
            attempt: tried.attempts,
            detail: tried.error.clone(),
        };
        let (mut changes, row) = match self.chained_changes.take() {
            Some(before) => {
                self.command = Some(before.claimed);
                (before.changes, before.row)
            }
            // Only the start or the decision is recorded.
            None => (Changes::default(), self.inline.as_ref()?.row()?),
        };
        if let Some(decided) = self.decided_before() {
            changes = joined(decided, changes);
        }
        changes.commands.push(NewWork { due_in, lease: None, tried: Some(tried), ..row });
        changes.history.push(failed);
        self.settle_locks(&mut changes);
        let mut prepared = PendingCommit::left(changes, present.saga, due_in, send_via);
        let changes = prepared.take_changes();
        self.pending = Some(prepared);
        Some(changes)
    }
}

/// The changes of two consecutive steps as one. The work row of the second was never written.
pub(crate) fn joined(mut first: Changes, second: Changes) -> Changes {
    first.saga = match (first.saga, second.saga) {
        (Some(before), Some(after)) => Some(Advance { expected: before.expected, ..after }),
        (before, after) => after.or(before),
    };
    first.withdrawn.extend(second.withdrawn);
    first.records.extend(second.records);
    first.revised.extend(second.revised);
    first.commands.extend(second.commands);
    first.messages.extend(second.messages);
    first.history.extend(second.history);
    first.locked.extend(second.locked);
    first.unlocked.extend(second.unlocked);
    first
}
