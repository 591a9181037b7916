//! From a decision of the machine to what is written, and to the command that is handed on.

use std::sync::Arc;
use std::time::Duration;

use super::choice::choose;
use super::emitted_events::{stands_late, tell_of_move, tellable};
use super::expiry::expiry_of;
use super::kept_report::keep_report;
use super::next_command::{UnansweredCall, is_in_memory, settle_time_left, time_to_wait};
use super::records::{add_records, add_revision, keep_inputs, reason_of, stuck_entry};
use super::unlocked::{unlock_between_attempts, unlocked};
use super::work_row::work_row;
use crate::engine::bulkhead::QueueSlot;
use crate::engine::context::Settings;
use crate::engine::instance::{AttemptDetails, NextSlot, NextWork, PendingCommit, SagaInstance, SendVia, WorkItem};
use crate::engine::message::Messages;
use crate::engine::outbox::Outbox;
use crate::engine::outcome::outcome_of;
use crate::engine::schedule::{Placement, Scheduler};
use crate::env::Environment;
use crate::machine::{self, Decision, Effect, Event, Next, Refused, Timer, answer_of, must_undo};
use crate::step::Emitted;
use crate::store::{
    Advance, Changes, Condition, HistoryEntry, HistoryKind, Lease, MemberId, Postponed, RecordedOutcome, Store, WorkId,
    WorkRef,
};

/// How many failed attempts of one command are kept one by one; of later ones only the last is known.
const FAILED_ATTEMPTS_KEPT: u32 = 100;

/// The command that goes straight to the workers.
type Successor = Option<LeasedNext>;

/// A command that this process has from the moment that its row is written.
struct LeasedNext {
    order: machine::Command,
    id: i64,
    owner: MemberId,
    /// Nothing where it inherits one.
    slot: Option<QueueSlot>,
}

/// The row that an attempt brings to its end, and under which condition.
pub(crate) fn finished_by<S: Store>(command: &WorkItem<S>, next: &Next) -> Option<(WorkRef, Condition)> {
    match next {
        Next::Again { .. } => None,
        Next::Settled(Event::Done { .. } | Event::Undone { .. }) => Some((command.work, Condition::Held)),
        Next::Settled(_) => Some((command.work, Condition::NotLate)),
    }
}

/// Finds the input that the undo of this step needs; false if it cannot be found, so that the saga needs an operator.
/// In a saga with branches, the worker that claims the undo's row reads what is missing.
fn find_undo_input<S: Store>(saga: &mut SagaInstance<S>, step: usize, blocked: &mut Vec<usize>) -> bool {
    let Err(reason) = saga.find_input(step) else { return true };
    if saga.definition.width > 1 {
        return true;
    }
    let definition = Arc::clone(&saga.definition);
    let decision = machine::apply(&definition.shape, &mut saga.state, Event::UndoBlocked { step, reason });
    blocked.extend(decision.map(|decision| decision.blocked).unwrap_or_default());
    false
}

fn postpone<S: Store>(
    command: &WorkItem<S>,
    due_in: Duration,
    maybe: bool,
    message: &str,
    attempts: u32,
) -> PendingCommit<S> {
    let mut prepared = PendingCommit::nothing();
    if attempts <= FAILED_ATTEMPTS_KEPT {
        prepared.changes.history.push(HistoryEntry {
            saga: command.saga.id,
            step: Some(command.step_id()),
            kind: HistoryKind::AttemptFailed,
            attempt: attempts,
            detail: message.to_owned(),
        });
    }
    prepared.changes.postponed.push(Postponed {
        work: command.work,
        due_in,
        attempts,
        in_doubt: maybe,
        error: Some(message.to_owned()),
    });
    prepared.unclaimed_due_in = Some(due_in);
    prepared.changes.unlocked.extend(unlock_between_attempts(command, maybe, attempts));
    prepared
}

/// Decides what follows from an event of a saga. It writes nothing and runs nothing.
pub(crate) struct Decider<S: Store> {
    pub(crate) env: Arc<dyn Environment>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) messages: Arc<Messages>,
    /// Absent where an operator decides on a bare store.
    runtime: Option<RuntimePorts<S>>,
}

/// What a decider asks of the runtime around it: where the next command may run, and who sends its messages.
pub(crate) struct RuntimePorts<S: Store> {
    pub(crate) scheduler: Arc<Scheduler<S>>,
    pub(crate) outbox: Arc<Outbox<S>>,
}

impl<S: Store> Decider<S> {
    /// The decider of a runtime.
    pub(crate) fn new(messages: Arc<Messages>, runtime: RuntimePorts<S>) -> Self {
        let ctx = &runtime.scheduler.ctx;
        let (env, settings) = (Arc::clone(&ctx.env), Arc::clone(&ctx.settings));
        Self { env, settings, messages, runtime: Some(runtime) }
    }

    /// A decider without a runtime: it leaves every command to the processes that claim, and every message to the relays.
    pub(crate) fn without_runtime(env: Arc<dyn Environment>, settings: Arc<Settings>) -> Self {
        let messages = Arc::new(Messages::new(&env, &settings));
        Self { env, settings, messages, runtime: None }
    }

    /// Who sends the messages of the next commit.
    pub(crate) fn send_via(&self) -> SendVia {
        self.runtime.as_ref().map_or(SendVia::Relay, |runtime| runtime.outbox.send_via())
    }

    /// This process as the owner of the next command, and where it may run; nothing where it is left to others.
    fn owner_and_slot(
        &self,
        saga: &SagaInstance<S>,
        order: machine::Command,
        slot: NextSlot,
    ) -> Option<(MemberId, Placement)> {
        let scheduler = &self.runtime.as_ref()?.scheduler;
        Some((scheduler.membership.member()?, scheduler.next_slot(saga, order, slot)))
    }
}

impl<S: Store> Decider<S> {
    /// What follows from an attempt of this command.
    pub(crate) fn decide_attempt(
        &self,
        command: &WorkItem<S>,
        next: &Next,
        findings: &AttemptDetails,
        hand_on: NextWork,
    ) -> PendingCommit<S> {
        let mut prepared = self.decide_attempt_on(command, command.saga.clone(), next, findings, hand_on);
        prepared.changes.finished.extend(finished_by(command, next));
        prepared
    }

    /// The same, from the saga as the command carried it, and without the end of the command's own row.
    pub(crate) fn decide_attempt_on(
        &self,
        command: &WorkItem<S>,
        mut saga: SagaInstance<S>,
        next: &Next,
        findings: &AttemptDetails,
        hand_on: NextWork,
    ) -> PendingCommit<S> {
        match next {
            Next::Again { delay, in_doubt: maybe, attempts, message } => {
                postpone(command, *delay, *maybe, message, *attempts)
            }
            Next::Settled(event) => {
                if !matches!(event, Event::Done { .. } | Event::Chosen { .. } | Event::Undone { .. }) {
                    // The step may be given out again, on another row.
                    saga.state.steps[command.step_index()].fence += command.work.epoch;
                    keep_report(command, &mut saga, findings);
                }
                // Only an operator's action is refused, and no attempt ends with one.
                match self.decide_on(&mut saga, event.clone(), findings, hand_on) {
                    Ok((prepared, handed_on)) => self.with_successor(prepared, saga, handed_on),
                    Err(_) => PendingCommit::nothing(),
                }
            }
        }
    }

    /// Moves a saga, and says what is to be written for it.
    pub(crate) fn decide(
        &self,
        saga: &mut SagaInstance<S>,
        event: Event,
        findings: &AttemptDetails,
        hand_on: NextWork,
    ) -> Result<PendingCommit<S>, Refused> {
        let (prepared, handed_on) = self.decide_on(saga, event, findings, hand_on)?;
        Ok(self.with_successor(prepared, saga.clone(), handed_on))
    }

    /// The same, without what carries the saga's state on: its successor, if there is one.
    fn decide_on(
        &self,
        saga: &mut SagaInstance<S>,
        event: Event,
        findings: &AttemptDetails,
        hand_on: NextWork,
    ) -> Result<(PendingCommit<S>, Successor), Refused> {
        let expected = saga.version;
        let event = tellable(saga, event);
        let error = reason_of(&event);
        let ended = event.unanswered().map(|step| UnansweredCall { step, took: findings.took });
        let definition = Arc::clone(&saga.definition);
        let (told, phase) = (answer_of(&saga.state), saga.state.phase);
        let mut decision = machine::apply(&definition.shape, &mut saga.state, event)?;
        saga.state.drop_reports();
        if must_undo(&saga.state) {
            let back = machine::apply(&definition.shape, &mut saga.state, Event::UndoRequested)?;
            decision.follow_with(back);
        }
        let mut prepared = PendingCommit::sending_via(self.send_via());
        let changes = &mut prepared.changes;
        add_records(saga, &decision, findings, error, changes);
        add_revision(saga, &decision, findings, changes);
        self.emit(saga, &decision, &findings.emitted, changes);
        choose(saga, &mut decision, changes);
        changes.withdrawn.extend(decision.withdrawn.iter().map(|timer| timer.row(saga.id)));
        self.map_inputs(saga, &mut decision);
        let mut handed_on = None;
        for (id, order) in (hand_on.ids..).zip(std::mem::take(&mut decision.commands)) {
            self.issue_command(saga, order, ended, NextWork { ids: id, ..hand_on }, &mut prepared, &mut handed_on);
        }
        keep_inputs(saga);
        let stuck = decision.blocked.iter().filter_map(|step| stuck_entry(saga, *step));
        prepared.changes.history.extend(stuck);
        prepared.changes.messages.extend(self.messages.reply_to_move(saga, told));
        if saga.definition.told.is_some() {
            tell_of_move(&self.messages, saga, told, &mut prepared.changes);
        }
        self.keep_result(saga);
        let status = saga.state.status();
        prepared.changes.unlocked = unlocked(saga, &decision, status);
        let expiry = expiry_of(saga, status, &self.settings);
        prepared.changes.saga = Some(Advance { id: saga.id, expected, status, state: Vec::new(), expiry });
        saga.version = expected + 1;
        prepared.outcome = Some((saga.id, outcome_of(&definition.shape, &saga.state)));
        prepared.turned = (saga.state.phase != phase).then_some(saga.state.phase);
        Ok((prepared, handed_on))
    }

    fn with_successor(
        &self,
        mut prepared: PendingCommit<S>,
        saga: SagaInstance<S>,
        handed_on: Successor,
    ) -> PendingCommit<S> {
        match handed_on {
            Some(heir) => prepared.successor = Some(Box::new(self.successor(saga, heir))),
            None => prepared.saga = Some(saga),
        }
        prepared
    }

    /// Computes the inputs of the steps that begin. A mapping that fails concerns this saga only: it needs a person.
    fn map_inputs(&self, saga: &mut SagaInstance<S>, decision: &mut Decision) {
        let definition = Arc::clone(&saga.definition);
        decision.commands.retain(|&order| {
            let step = match order {
                machine::Command::Do { step } => step,
                machine::Command::Undo { step, .. } => return find_undo_input(saga, step, &mut decision.blocked),
            };
            if saga.inputs.of(step).is_some() {
                // It is tried again, with what was computed the first time.
                return true;
            }
            if saga.state.items_of(step).is_some() {
                // Its list was made; what its items gave is to be joined.
                return true;
            }
            // An item finds its input in the list.
            let Some(mapping) = definition.steps.get(step).and_then(|step| step.input.as_ref()) else { return true };
            let input = mapping.apply(&saga.input, &saga.outputs).and_then(|input| self.check_length(input));
            match input {
                Ok(input) => {
                    saga.inputs.set(step, input.into());
                    true
                }
                Err(problem) => {
                    let reason = format!("its input cannot be made: {problem}");
                    let blocked = Event::Blocked { step, reason, in_doubt: false };
                    let blocked = machine::apply(&definition.shape, &mut saga.state, blocked);
                    decision.blocked.extend(blocked.map(|blocked| blocked.blocked).unwrap_or_default());
                    false
                }
            }
        });
    }

    /// Whether bytes are short enough to be stored.
    pub(crate) fn check_length(&self, bytes: Vec<u8>) -> Result<Vec<u8>, String> {
        let max = self.settings.payload_bytes_max;
        if bytes.len() <= max {
            Ok(bytes)
        } else {
            Err(format!(
                "it has {} bytes; `payload_bytes_max` allows {max}, so store it elsewhere and return a reference",
                bytes.len()
            ))
        }
    }

    fn issue_command(
        &self,
        saga: &mut SagaInstance<S>,
        order: machine::Command,
        ended: Option<UnansweredCall>,
        hand_on: NextWork,
        prepared: &mut PendingCommit<S>,
        handed_on: &mut Successor,
    ) {
        let due_in = settle_time_left(saga, order, ended);
        if matches!(saga.definition.effect_of(&saga.state, order), Effect::Remote { .. }) {
            return self.send_remote(saga, order, due_in, hand_on, prepared);
        }
        if let (machine::Command::Do { step }, Some(idle)) = (order, time_to_wait(saga, order)) {
            saga.state.steps[step].timer = Some(Timer::of(WorkId(hand_on.ids)));
            prepared.leave_free(idle);
            return prepared.changes.commands.push(work_row(saga, order, hand_on.ids, idle, None));
        }
        if let machine::Command::Do { step } = order
            && saga.definition.shape.is_lock(step)
        {
            // The row waits for the lock, and is withdrawn if the saga compensates.
            saga.state.steps[step].timer = Some(Timer::of(WorkId(hand_on.ids)));
        }
        let is_next =
            hand_on.slot != NextSlot::Nowhere && due_in.is_zero() && handed_on.is_none() && is_in_memory(saga, order);
        let found = is_next.then(|| self.owner_and_slot(saga, order, hand_on.slot)).flatten();
        let (owner, slot) = match found {
            Some((owner, Placement::Acquired(slot))) => (Some(owner), Some(slot)),
            Some((owner, Placement::Inherited)) => (Some(owner), None),
            Some((_, Placement::NoSlot)) => {
                prepared.has_no_room = true;
                (None, None)
            }
            Some((_, Placement::NoPermit)) | None => {
                prepared.leave_free(due_in);
                (None, None)
            }
        };
        let lease = owner.map(|owner| Lease { owner, ttl: self.settings.lease_ttl });
        prepared.changes.commands.push(work_row(saga, order, hand_on.ids, due_in, lease));
        if let Some(owner) = owner {
            *handed_on = Some(LeasedNext { order, id: hand_on.ids, owner, slot });
        }
    }

    /// The command of the row that was just written, leased to this process.
    fn successor(&self, mut saga: SagaInstance<S>, heir: LeasedNext) -> WorkItem<S> {
        let LeasedNext { order, id, owner, slot } = heir;
        let step = order.step();
        // Whether the list is here was asked before the command was handed on, and it was counted when it was unfolded.
        _ = saga.pick_item(step);
        let lease_until = self.env.now().saturating_add(self.settings.lease_ttl);
        WorkItem::new(saga, WorkId(id), order, owner, lease_until, slot)
    }

    pub(crate) fn emit(
        &self,
        saga: &mut SagaInstance<S>,
        decision: &Decision,
        emitted: &[Emitted],
        changes: &mut Changes,
    ) {
        // What a step emits leaves with a recorded success only.
        let is_done = decision.record.is_some_and(|record| record.outcome == RecordedOutcome::Done);
        if !is_done && !stands_late(saga, decision) {
            return;
        }
        for event in emitted {
            let message = self.messages.event_message(saga, &event.name, event.payload.clone());
            changes.messages.push(message);
        }
    }
}
