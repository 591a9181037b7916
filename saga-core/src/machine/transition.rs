use super::answers::taken_back;
use super::call_off::{call_off, is_fresh};
use super::choose::{chosen, pass_by};
use super::choreography::is_given_up;
use super::compensate::{begin_compensation, called_back, go_on_undoing, late, late_unknown, undo_blocked, undone};
use super::deadline;
use super::decision::{Command, Decision, Record};
use super::event::{Event, Refused};
use super::operator;
use super::pause::{park, pause, resume};
use super::remote::Sent;
use super::shape::{Shape, Side, UndoShape};
use super::signal::receive;
use super::state::{Failure, FailureKind, Phase, SagaState, StepPhase, Stuck};
use super::take_over::take_over;
use crate::step::limited;
use crate::store::RecordedOutcome;

/// Begins a saga: its state, and the commands of the steps that it begins with.
pub fn start(shape: &Shape) -> (SagaState, Vec<Command>) {
    let mut state = SagaState::new(shape.steps.len());
    let mut decision = Decision::default();
    go_on(shape, &mut state, &mut decision);
    (state, decision.commands)
}

/// Moves a saga. Every event is accepted in every phase: what comes late or twice changes nothing, or is a fact that
/// counts.
///
/// # Errors
/// Only an operator's action, calling the saga off, pausing and resuming it, a deadline and a signal are refused; then nothing
/// changed.
pub fn apply(shape: &Shape, state: &mut SagaState, event: Event) -> Result<Decision, Refused> {
    let mut decision = Decision::default();
    match event {
        // A choice says which arm runs, and nobody but the engine makes it.
        Event::Done { step } if shape.is_choice(step) => chosen(shape, state, step, None, &mut decision),
        Event::Late { step } | Event::LateUnknown { step } if shape.is_choice(step) || shape.is_idle(step) => {}
        // One that only waits is over when the saga turned round.
        Event::Done { step } if shape.is_idle(step) && state.steps[step].phase != StepPhase::Started => {}
        Event::Done { step } => done(shape, state, step, &mut decision),
        Event::Chosen { step, arm } => chosen(shape, state, step, arm, &mut decision),
        Event::Listed { step, items } => listed(shape, state, step, items, &mut decision),
        Event::Rejected { step, failure } | Event::Failed { step, failure }
            if shape.side(state.base(step)) == Side::After =>
        {
            let what = if failure.kind == FailureKind::Rejected { "rejected" } else { "failed" };
            block(shape, state, step, false, format!("{what} after the pivot: {}", failure.reason), &mut decision);
        }
        Event::Rejected { step, failure } => {
            without_effect(shape, state, step, RecordedOutcome::Rejected, Some(failure), &mut decision);
        }
        Event::Failed { step, failure } => {
            without_effect(shape, state, step, RecordedOutcome::Failed, Some(failure), &mut decision);
        }
        Event::Cancelled { step } => cancelled(shape, state, step, &mut decision),
        Event::Unknown { step, failure } => unknown(shape, state, step, failure, &mut decision),
        Event::Blocked { step, reason, in_doubt: maybe } => {
            if maybe {
                may_have_happened(state, step);
            }
            block(shape, state, step, false, reason, &mut decision);
        }
        Event::Undone { step, informed } => called_back(shape, state, step, informed, &mut decision),
        Event::UndoBlocked { step, reason } => undo_blocked(shape, state, step, reason, &mut decision),
        Event::TakenBack => taken_back(shape, state, &mut decision),
        Event::CalledOff { reason, has_begun } => {
            let is_fresh = !has_begun && is_fresh(shape, state);
            call_off(shape, state, FailureKind::Cancelled, reason, is_fresh, &mut decision)?;
        }
        Event::Signalled { step, id } => receive(shape, state, step, id, &mut decision)?,
        Event::DeadlinePassed => deadline::passed(shape, state, &mut decision)?,
        Event::Late { step } => late(shape, state, step, &mut decision),
        Event::LateUnknown { step } => late_unknown(shape, state, step, &mut decision),
        Event::TakenOver { steps, passed_by } => take_over(shape, state, &steps, &passed_by, &mut decision),
        Event::Paused { by, reason } => pause(state, by, reason)?,
        Event::Parked { work } => park(state, work),
        Event::Resumed => resume(shape, state, &mut decision)?,
        Event::Operator(action) => operator::act(shape, state, action, &mut decision)?,
    }
    if state.paused.is_some() && state.has_ended() {
        // A pause ends with its saga: what is reported later is undone as ever.
        state.paused = None;
    }
    decision.withdrawn.extend(deadline::let_go(shape, state));
    Ok(decision)
}

/// A step took effect: its place in the order is given here, under the lock of the saga's row.
pub(super) fn done(shape: &Shape, state: &mut SagaState, step: usize, decision: &mut Decision) {
    match state.steps[step].phase {
        StepPhase::Started => {}
        StepPhase::Done => return,
        // It was decided without this success.
        _ => return late(shape, state, step, decision),
    }
    settle(state, step, StepPhase::Done, RecordedOutcome::Done, decision);
    match state.phase {
        Phase::Running => go_on(shape, state, decision),
        Phase::Compensating => go_on_undoing(shape, state, decision),
        // An operator had ended the saga while the step was on its way: as completed it is welcome, as compensated
        // it is an effect that must not stay.
        Phase::Completed => {}
        Phase::Compensated => {
            state.phase = Phase::Compensating;
            go_on_undoing(shape, state, decision);
        }
    }
}

pub(super) fn without_effect(
    shape: &Shape,
    state: &mut SagaState,
    step: usize,
    outcome: RecordedOutcome,
    failure: Option<Failure>,
    decision: &mut Decision,
) {
    if state.steps[step].phase != StepPhase::Started {
        return;
    }
    let phase = match outcome {
        RecordedOutcome::Rejected => StepPhase::Rejected,
        RecordedOutcome::Failed => StepPhase::Failed,
        _ => StepPhase::Cancelled,
    };
    settle(state, step, phase, outcome, decision);
    match state.phase {
        Phase::Running => begin_compensation(shape, state, failure, decision),
        Phase::Compensating => go_on_undoing(shape, state, decision),
        Phase::Completed | Phase::Compensated => {}
    }
}

/// While the saga goes forward nobody may cancel its command, so one that comes back is given out again, unless a
/// person is to decide about it.
fn cancelled(shape: &Shape, state: &mut SagaState, step: usize, decision: &mut Decision) {
    if state.phase == Phase::Running && !is_given_up(state) {
        if !state.is_stuck_at(step) && state.steps[step].phase == StepPhase::Started {
            decision.commands.push(Command::Do { step });
        }
    } else {
        without_effect(shape, state, step, RecordedOutcome::Cancelled, None, decision);
    }
}

/// The record of an unknown step bars it: what an older owner still reports comes in as late. It is written only when
/// the undo begins; as long as a person must decide, the step can be tried again.
fn unknown(shape: &Shape, state: &mut SagaState, step: usize, failure: Failure, decision: &mut Decision) {
    if state.steps[step].phase != StepPhase::Started {
        return;
    }
    let only_forward = state.phase == Phase::Running && shape.side(state.base(step)) != Side::Before;
    let undo = shape.undo(state, step);
    if only_forward || matches!(undo, UndoShape::NeedsOutput | UndoShape::Missing) {
        let reason = if only_forward || undo == UndoShape::Missing {
            format!("it may or may not have happened, and there is no way back: {}", failure.reason)
        } else {
            format!("it may or may not have happened, and its compensation needs its output: {}", failure.reason)
        };
        may_have_happened(state, step);
        block(shape, state, step, false, reason, decision);
        return;
    }
    settle(state, step, StepPhase::Unknown, RecordedOutcome::Unknown, decision);
    state.steps[step].in_doubt = true;
    match state.phase {
        Phase::Running => begin_compensation(shape, state, Some(failure), decision),
        Phase::Compensating => go_on_undoing(shape, state, decision),
        Phase::Completed => {}
        Phase::Compensated => {
            state.phase = Phase::Compensating;
            go_on_undoing(shape, state, decision);
        }
    }
}

/// Gives out every step whose turn has come, or ends the saga. While a person is to decide, or has paused it, nothing new
/// of it begins.
pub(super) fn go_on(shape: &Shape, state: &mut SagaState, decision: &mut Decision) {
    if state.stuck.is_some() {
        return;
    }
    let is_paused = state.paused.is_some();
    for step in (0..shape.steps.len()).filter(|_| !is_paused) {
        match state.steps[step].phase {
            StepPhase::Ready if shape.predecessors(step).all(|before| is_passed(state, before)) => {
                begin(state, step, decision);
            }
            StepPhase::FannedOut => go_on_with_items(shape, state, step, decision),
            _ => {}
        }
    }
    if (0..shape.steps.len()).all(|step| is_passed(state, step)) {
        state.phase = Phase::Completed;
    }
}

fn begin(state: &mut SagaState, step: usize, decision: &mut Decision) {
    state.steps[step].phase = StepPhase::Started;
    decision.commands.push(Command::Do { step });
}

fn is_passed(state: &SagaState, step: usize) -> bool {
    state.steps[step].phase.is_passed()
}

/// The items of a list are branches of a group that begin one after the other, so that not more than so many are under
/// way. When every item is passed the step itself is given out once more: it joins what they returned.
fn go_on_with_items(shape: &Shape, state: &mut SagaState, step: usize, decision: &mut Decision) {
    let items = state.items_of(step).unwrap_or_default();
    if items.clone().all(|item| is_passed(state, item)) {
        return begin(state, step, decision);
    }
    let under_way = state.steps[items.clone()].iter().filter(|item| item.phase == StepPhase::Started).count();
    let room = shape.each(step).unwrap_or(1).saturating_sub(under_way);
    let waiting: Vec<usize> = items.filter(|&item| state.steps[item].phase == StepPhase::Ready).take(room).collect();
    for item in waiting {
        begin(state, item, decision);
    }
}

/// The list of a step is there: from now on each of its items is a step.
fn listed(shape: &Shape, state: &mut SagaState, step: usize, items: usize, decision: &mut Decision) {
    let is_awaited = shape.each(step).is_some() && state.items_of(step).is_none();
    if !is_awaited || state.steps[step].phase != StepPhase::Started {
        return;
    }
    if state.phase != Phase::Running {
        // The saga turned round meanwhile: none of them begins.
        return without_effect(shape, state, step, RecordedOutcome::Cancelled, None, decision);
    }
    state.unfold(step, items);
    (state.steps[step].phase, state.steps[step].in_doubt) = (StepPhase::FannedOut, false);
    decision.listed = Some((step, state.next_position()));
    unblock(state, step, false, decision);
    go_on(shape, state, decision);
}

/// What a person is to decide may have happened, and remains so when it is tried again: a rejection does not say then
/// that it has not.
fn may_have_happened(state: &mut SagaState, step: usize) {
    if state.steps[step].phase == StepPhase::Started {
        state.steps[step].in_doubt = true;
    }
}

/// Writes down what became of a step. Where a person was to decide about it, it is decided.
pub(super) fn settle(
    state: &mut SagaState,
    step: usize,
    phase: StepPhase,
    outcome: RecordedOutcome,
    decision: &mut Decision,
) {
    let position = state.next_position();
    let settled = &mut state.steps[step];
    (settled.phase, settled.position, settled.in_doubt, settled.timer) = (phase, position, false, None);
    // No row waits for a reply any more, and the record has the input. What asked for it stays known, since a late
    // success counts.
    settled.sent = settled.sent.map(|sent| Sent { work: 0, given: 0, ..sent });
    decision.insert(Record { step, undo_round: None, outcome, position });
    unblock(state, step, false, decision);
}

/// What a person was to decide has been decided. What else needs one has its turn now.
pub(super) fn unblock(state: &mut SagaState, step: usize, undo: bool, decision: &mut Decision) {
    let is_it = |stuck: &Stuck| stuck.step == step && stuck.undo == undo;
    state.also_stuck.retain(|stuck| !is_it(stuck));
    if state.stuck.take_if(|stuck| is_it(stuck)).is_some() {
        next_stuck(state, decision);
    }
}

/// The turn of what else needs a person.
pub(super) fn next_stuck(state: &mut SagaState, decision: &mut Decision) {
    if state.stuck.is_none() && !state.also_stuck.is_empty() {
        state.stuck = Some(state.also_stuck.remove(0));
        decision.became_stuck = true;
    }
}

/// The saga needs a person. The first reason stays until that person acted; what gets stuck beside it waits for its
/// turn. What gets stuck in a saga that a person has ended already is left as it is.
pub(super) fn block(
    shape: &Shape,
    state: &mut SagaState,
    step: usize,
    undo: bool,
    reason: String,
    decision: &mut Decision,
) {
    let expected = if undo { StepPhase::Undoing } else { StepPhase::Started };
    if state.steps[step].phase != expected || state.is_stuck_at(step) {
        return;
    }
    match state.phase {
        Phase::Running | Phase::Compensating => {
            state.also_stuck.push(Stuck { step, undo, reason: limited(reason), input: None });
            decision.blocked.push(step);
            next_stuck(state, decision);
        }
        _ if undo => undone(shape, state, step, RecordedOutcome::Skipped, decision),
        _ => {
            settle(state, step, StepPhase::Skipped, RecordedOutcome::Skipped, decision);
            pass_by(shape, state, step, None);
        }
    }
}
