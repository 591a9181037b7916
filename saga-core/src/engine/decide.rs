//! From a decision of the machine to what is written, and to the command that is handed on.

use std::time::Duration;

use super::bulkhead::{Pool, QueueSlot};
use super::choose::choose;
use super::choreography::tellable;
use super::command::WorkItem;
use super::in_flight::SagaInstance;
use super::notes::{add_records, add_revision, keep_inputs, reason_of, stuck_entry};
use super::outcome::outcome_of;
use super::prepared::{AttemptDetails, NextSlot, NextWork, PendingCommit};
use super::shared::EngineContext;
use crate::machine::{self, Decision, Effect, Event, Next, Refused, Timer, answer_of, is_to_be_taken_back};
use crate::step::Emitted;
use crate::store::{
    Advance, Changes, Condition, Headers, HistoryEntry, HistoryKind, Lease, MemberId, MessageId, MessageKind,
    NewMessage, NewWork, Postponed, RecordedOutcome, Store, WorkId, WorkKind, WorkRef, lane_of,
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
    place: Option<QueueSlot>,
}

/// What place there is for a command.
enum Placement {
    Inherited,
    Free(QueueSlot),
    /// This process has as much of that kind as it can hold.
    NoRoom,
    /// It would wait here: it is left for anybody who can begin it.
    NoLine,
}

impl<S: Store> EngineContext<S> {
    /// What follows from an attempt of this command.
    pub(super) fn decide_attempt(
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
    pub(super) fn decide_attempt_on(
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
                    Self::keep_report(command, &mut saga, findings);
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
    pub(super) fn decide(
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
        let definition = std::sync::Arc::clone(&saga.definition);
        let told = answer_of(&saga.state);
        let mut decision = machine::apply(&definition.shape, &mut saga.state, event)?;
        saga.state.drop_reports();
        if is_to_be_taken_back(&saga.state) {
            let back = machine::apply(&definition.shape, &mut saga.state, Event::TakenBack)?;
            decision.commands.extend(back.commands);
            decision.blocked.extend(back.blocked);
            decision.withdrawn.extend(back.withdrawn);
        }
        let mut prepared = PendingCommit::nothing();
        let changes = &mut prepared.changes;
        changes.withdrawn.extend(decision.withdrawn.iter().map(|timer| timer.row(saga.id)));
        add_records(saga, &decision, findings, error, changes);
        add_revision(saga, &decision, findings, changes);
        self.emit(saga, &decision, &findings.emitted, changes);
        choose(saga, &mut decision, changes);
        self.map_inputs(saga, &mut decision);
        let mut handed_on = None;
        for (id, order) in (hand_on.ids..).zip(std::mem::take(&mut decision.commands)) {
            self.issue_command(saga, order, findings, NextWork { ids: id, ..hand_on }, &mut prepared, &mut handed_on);
        }
        keep_inputs(saga);
        let stuck = decision.blocked.iter().filter_map(|step| stuck_entry(saga, *step));
        prepared.changes.history.extend(stuck);
        prepared.changes.messages.extend(self.reply_to_move(saga, told));
        if saga.definition.told.is_some() {
            self.tell_of_move(saga, told, &mut prepared.changes);
        }
        prepared.changes.saga = Some(Advance { id: saga.id, expected, status: saga.state.status(), state: Vec::new() });
        saga.version = expected + 1;
        prepared.outcome = Some((saga.id, outcome_of(&definition.shape, &saga.state)));
        self.mark_sent_from_memory(&mut prepared.changes.messages);
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
        let definition = std::sync::Arc::clone(&saga.definition);
        decision.commands.retain(|&order| {
            let step = match order {
                machine::Command::Do { step } => step,
                machine::Command::Undo { step, .. } => return find_undo_input(saga, step, &mut decision.blocked),
            };
            if saga.mapped_input_of(step).is_some() {
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
                    saga.set_input(step, input.into());
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
    pub(super) fn check_length(&self, bytes: Vec<u8>) -> Result<Vec<u8>, String> {
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
        findings: &AttemptDetails,
        hand_on: NextWork,
        prepared: &mut PendingCommit<S>,
        handed_on: &mut Successor,
    ) {
        let due_in = settle_time_left(saga, order, findings);
        if matches!(saga.effect_of(order), Effect::Remote { .. }) {
            return self.send_remote(saga, order, due_in, hand_on, prepared);
        }
        if let (machine::Command::Do { step }, Some(idle)) = (order, saga.idle_for(order)) {
            saga.state.steps[step].timer = Some(Timer::of(WorkId(hand_on.ids)));
            prepared.leave_free(idle);
            return prepared.changes.commands.push(work_row(saga, order, hand_on.ids, idle, None));
        }
        let is_next =
            hand_on.slot != NextSlot::Nowhere && due_in.is_zero() && handed_on.is_none() && saga.knows_all_for(order);
        let owner = is_next.then(|| self.member()).flatten();
        let found = owner.map(|_| self.next_slot(saga, order, hand_on.slot));
        let (place, is_ours) = match found {
            Some(Placement::Free(place)) => (Some(place), true),
            Some(Placement::Inherited) => (None, true),
            Some(Placement::NoRoom) => {
                prepared.has_no_room = true;
                (None, false)
            }
            Some(Placement::NoLine) | None => {
                prepared.leave_free(due_in);
                (None, false)
            }
        };
        let owner = owner.filter(|_| is_ours);
        let lease = owner.map(|owner| Lease { owner, ttl: self.settings.lease_ttl });
        prepared.changes.commands.push(work_row(saga, order, hand_on.ids, due_in, lease));
        if let Some(owner) = owner {
            *handed_on = Some(LeasedNext { order, id: hand_on.ids, owner, place });
        }
    }

    /// The place of the next command. A call has one only together with a line, on which it begins at once.
    fn next_slot(&self, saga: &SagaInstance<S>, order: machine::Command, before: NextSlot) -> Placement {
        let seat = self.seat_of(saga, order);
        let is_call = seat.pool == Pool::Calls;
        if let NextSlot::Of { seat: before, has_line } = before
            && before == seat
            && !seat.has_step_limit()
            && (has_line || !is_call)
        {
            return Placement::Inherited;
        }
        let Some(mut place) = self.bulkheads.try_place(seat) else { return Placement::NoRoom };
        if is_call {
            // Those that wait already come first.
            let line = if self.calls.has_waiting(seat.flow()) { None } else { self.bulkheads.try_line(seat) };
            if line.is_none() {
                return Placement::NoLine;
            }
            place.set_line(line);
        }
        Placement::Free(place)
    }

    /// The command of the row that was just written, leased to this process.
    fn successor(&self, mut saga: SagaInstance<S>, heir: LeasedNext) -> WorkItem<S> {
        let LeasedNext { order, id, owner, place } = heir;
        let (machine::Command::Do { step } | machine::Command::Undo { step, .. }) = order;
        // Whether the list is here was asked before the command was handed on, and it was counted when it was unfolded.
        _ = saga.pick_item(step);
        WorkItem {
            saga,
            work: WorkRef { id: WorkId(id), epoch: 1 },
            command: order,
            attempts: 0,
            in_doubt: false,
            recovered: false,
            chains: true,
            retrying_for: Duration::ZERO,
            late_success: None,
            owner,
            is_claimed_only: false,
            lease_until: self.env.now().saturating_add(self.settings.lease_ttl),
            slot: place,
            inline_start: None,
            held_lease: None,
            reported: None,
        }
    }

    fn emit(&self, saga: &mut SagaInstance<S>, decision: &Decision, emitted: &[Emitted], changes: &mut Changes) {
        // What a step emits leaves with a recorded success only.
        if !decision.record.is_some_and(|record| record.outcome == RecordedOutcome::Done) {
            return;
        }
        for event in emitted {
            let message = self.event_message(saga, &event.name, event.payload.clone());
            changes.messages.push(message);
        }
    }

    /// An event of a saga. Those of a saga with a definition have its name as their topic; those of a step that events
    /// ask for have their own.
    pub(super) fn event_message(&self, saga: &mut SagaInstance<S>, name: &str, payload: Vec<u8>) -> NewMessage {
        saga.state.messages += 1;
        let traceparent = saga.state.caller.as_ref().and_then(|caller| caller.traceparent.clone());
        let headers = Headers { saga_key: Some(saga.outside_key().to_string()), traceparent, ..Headers::default() };
        let topic = if saga.definition.told.is_some() { name } else { &saga.definition.id.name };
        NewMessage {
            id: MessageId(self.random_uuid()),
            kind: MessageKind::Event,
            tenant: saga.tenant.clone(),
            aggregate_type: topic.to_owned(),
            aggregate_id: saga.key.to_string(),
            event_type: name.to_owned(),
            payload,
            position: saga.state.messages,
            lane: lane_of(&saga.tenant, topic, saga.key.as_str()),
            headers,
            due_in: Duration::ZERO,
        }
    }
}

/// The row that an attempt brings to its end, and under which condition.
pub(super) fn finished_by<S: Store>(command: &WorkItem<S>, next: &Next) -> Option<(WorkRef, Condition)> {
    match next {
        Next::Again { .. } => None,
        Next::Settled(Event::Done { .. } | Event::Undone { .. }) => Some((command.work, Condition::Held)),
        Next::Settled(_) => Some((command.work, Condition::NotLate)),
    }
}

/// Has an undo find what its step was given; false where that cannot be found, which needs a person. In a saga with
/// branches what is missing is read by whoever claims its row.
fn find_undo_input<S: Store>(saga: &mut SagaInstance<S>, step: usize, blocked: &mut Vec<usize>) -> bool {
    let Err(reason) = saga.find_input(step) else { return true };
    if saga.definition.width > 1 {
        return true;
    }
    let definition = std::sync::Arc::clone(&saga.definition);
    let decision = machine::apply(&definition.shape, &mut saga.state, Event::UndoBlocked { step, reason });
    blocked.extend(decision.map(|decision| decision.blocked).unwrap_or_default());
    false
}

/// The row of a command; a lease says that this process has it already.
pub(super) fn work_row<S: Store>(
    saga: &SagaInstance<S>,
    order: machine::Command,
    id: i64,
    due_in: Duration,
    lease: Option<Lease>,
) -> NewWork {
    let payload = match order {
        // Items have theirs from their list, and a list or a signal that is recorded is there.
        machine::Command::Do { step } if is_of_list(saga, step) || saga.state.steps[step].signal.is_some() => None,
        machine::Command::Do { step } => saga.mapped_input_of(step).map(|input| input.to_vec()),
        machine::Command::Undo { .. } => None,
    };
    let kind = match order {
        machine::Command::Do { .. } => WorkKind::Do,
        machine::Command::Undo { .. } => WorkKind::Undo,
    };
    NewWork {
        id: WorkId(id),
        saga: saga.id,
        tenant: saga.tenant.clone(),
        key: saga.key.clone(),
        kind,
        step: saga.step_id(order),
        definition: saga.definition.id.clone(),
        payload,
        due_in,
        lease,
        tried: None,
    }
}

fn is_of_list<S: Store>(saga: &SagaInstance<S>, step: usize) -> bool {
    saga.state.item_number(step).is_some() || saga.state.items_of(step).is_some()
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
    prepared
}

/// A compensation that does not know whether there is anything to undo waits until a call that is still on its way
/// must have landed: twice the step's time limit after the last call began.
fn settle_time_left<S: Store>(saga: &SagaInstance<S>, order: machine::Command, findings: &AttemptDetails) -> Duration {
    match order {
        machine::Command::Undo { step, known: false, .. }
            if saga.effect_of(machine::Command::Do { step }) == Effect::External =>
        {
            saga.step(step).options.timeout.saturating_mul(2).saturating_sub(findings.took)
        }
        _ => Duration::ZERO,
    }
}
