use super::answers::taken_back;
use super::call_off::{call_off, is_fresh};
use super::compensate::{begin_compensation, called_back, go_on_undoing, late, undo_blocked, undone};
use super::operator;
use super::shape::{Shape, Side, UndoShape};
use super::state::{Failure, FailureKind, Phase, SagaState, StepPhase, Stuck};
use crate::step::Rejection;
use crate::store::RecordedOutcome;

/// Something that happened to a saga.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A step took effect.
    Done {
        /// The step.
        step: usize,
    },
    /// A step failed definitely, and took no effect.
    Rejected {
        /// The step.
        step: usize,
        /// Why.
        failure: Failure,
    },
    /// A step is out of attempts, and took no effect.
    Failed {
        /// The step.
        step: usize,
        /// Why.
        failure: Failure,
    },
    /// A step is out of attempts, or gives contradictory answers, and may have taken effect.
    Unknown {
        /// The step.
        step: usize,
        /// Why.
        failure: Failure,
    },
    /// A command was given back before it began, and never begins.
    Cancelled {
        /// The step.
        step: usize,
    },
    /// A step cannot go on without a person.
    Blocked {
        /// The step.
        step: usize,
        /// Why.
        reason: String,
        /// Whether it may have taken effect by now.
        maybe: bool,
    },
    /// A step was undone.
    Undone {
        /// The step.
        step: usize,
        /// Whether every call of this undo was given what the step returned. If not, a success that was reported in the
        /// meantime is still to be undone.
        informed: bool,
    },
    /// An undo cannot go on without a person.
    UndoBlocked {
        /// The step.
        step: usize,
        /// Why.
        reason: String,
    },
    /// An older owner reports a success after the step was decided without it.
    Late {
        /// The step.
        step: usize,
    },
    /// Whoever asked for the saga, which is a hosted step, takes it back.
    TakenBack,
    /// The saga is called off before its pivot: it turns round although no step of it failed.
    CalledOff {
        /// Why.
        reason: Rejection,
        /// Whether a command of it may have been claimed. If not, all of them are taken back with this event.
        has_begun: bool,
    },
    /// An operator acts on a stuck saga.
    Operator(Action),
}

/// What an operator can do with a stuck saga.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Try what is stuck again, with fresh attempts.
    Retry,
    /// Go past what is stuck. A step that is skipped counts as done without an effect; an undo that is skipped leaves the effect as it is.
    Skip,
    /// End the saga as it is.
    Force {
        /// As completed, or as compensated.
        completed: bool,
        /// Why.
        reason: String,
    },
}

/// What follows from an event.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Decision {
    /// Commands to give out.
    pub commands: Vec<Command>,
    /// The step record to insert.
    pub record: Option<Record>,
    /// Further ones, where one action decides about several steps.
    pub further: Vec<Record>,
    /// The step record to revise.
    pub revision: Option<Revision>,
    /// The steps that cannot go on without a person from now on, or whose undos cannot.
    pub blocked: Vec<usize>,
    /// The saga turned out to need a person just now.
    pub became_stuck: bool,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Do a step.
    Do {
        /// The step.
        step: usize,
    },
    /// Undo a step.
    Undo {
        /// The step.
        step: usize,
        /// Which undo of it, from 1.
        round: u32,
        /// Whether it is known to have taken effect. If not, the compensation waits for the settle time and gets `None`.
        known: bool,
    },
}

/// A step record to insert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// The step.
    pub step: usize,
    /// Which undo of it; nothing for the step itself.
    pub undo_round: Option<u32>,
    /// What became of it.
    pub outcome: RecordedOutcome,
    /// Its place in the order of the saga's records.
    pub position: u32,
}

/// A step record to revise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Revision {
    /// The step.
    pub step: usize,
    /// What the record says now.
    pub expected: RecordedOutcome,
    /// What it will say.
    pub outcome: RecordedOutcome,
}

/// Why an operator's action, or calling a saga off, was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The saga does not need a person.
    #[error("the saga is not stuck")]
    NotStuck,
    /// The saga has turned round before.
    #[error("the saga compensates already")]
    TurnedRound,
    /// The saga has come to its end.
    #[error("the saga has ended already")]
    Ended,
    /// The saga only goes forward.
    #[error("its pivot `{pivot}` is under way or done, and from there the saga only goes forward")]
    PastPivot {
        /// The pivot.
        pivot: &'static str,
    },
    /// Another saga asked for it.
    #[error("it is a step of another service's saga, and ends with that: cancel that saga")]
    Hosted,
}

impl Decision {
    pub(super) fn insert(&mut self, record: Record) {
        match self.record {
            None => self.record = Some(record),
            Some(_) => self.further.push(record),
        }
    }
}

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
/// Only an operator's action, and calling the saga off, are refused; then nothing changed.
pub fn apply(shape: &Shape, state: &mut SagaState, event: Event) -> Result<Decision, Refused> {
    let mut decision = Decision::default();
    match event {
        Event::Done { step } => done(shape, state, step, &mut decision),
        Event::Rejected { step, failure } | Event::Failed { step, failure } if shape.side(step) == Side::After => {
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
        Event::Blocked { step, reason, maybe } => {
            if maybe {
                may_have_happened(state, step);
            }
            block(shape, state, step, false, reason, &mut decision);
        }
        Event::Undone { step, informed } => called_back(shape, state, step, informed, &mut decision),
        Event::UndoBlocked { step, reason } => undo_blocked(shape, state, step, reason, &mut decision),
        Event::TakenBack => taken_back(shape, state, &mut decision),
        Event::CalledOff { reason, has_begun } => {
            let is_fresh = !has_begun && is_fresh(state);
            call_off(shape, state, reason, is_fresh, &mut decision)?;
        }
        Event::Late { step } => late(shape, state, step, &mut decision),
        Event::Operator(action) => operator::act(shape, state, action, &mut decision)?,
    }
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

fn without_effect(
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
    if state.phase == Phase::Running {
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
    let only_forward = state.phase == Phase::Running && shape.side(step) != Side::Before;
    let undo = shape.steps[step].undo;
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
    state.steps[step].maybe = true;
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

/// Gives out every step whose turn has come, or ends the saga. While a person is to decide nothing new of it begins.
pub(super) fn go_on(shape: &Shape, state: &mut SagaState, decision: &mut Decision) {
    if state.stuck.is_some() {
        return;
    }
    let is_passed =
        |state: &SagaState, step: usize| matches!(state.steps[step].phase, StepPhase::Done | StepPhase::Skipped);
    let mut first = 0;
    while let Some(ready) = state.steps[first..].iter().position(|step| step.phase == StepPhase::Ready) {
        let step = first + ready;
        if shape.predecessors(step).all(|before| is_passed(state, before)) {
            state.steps[step].phase = StepPhase::Started;
            decision.commands.push(Command::Do { step });
        }
        first = step + 1;
    }
    if (0..state.steps.len()).all(|step| is_passed(state, step)) {
        state.phase = Phase::Completed;
    }
}

/// What a person is to decide may have happened, and remains so when it is tried again: a rejection does not say then
/// that it has not.
fn may_have_happened(state: &mut SagaState, step: usize) {
    if state.steps[step].phase == StepPhase::Started {
        state.steps[step].maybe = true;
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
    (settled.phase, settled.position, settled.maybe) = (phase, position, false);
    decision.insert(Record { step, undo_round: None, outcome, position });
    unblock(state, step, false, decision);
}

/// What a person was to decide has been decided. What else needs one has its turn now.
pub(super) fn unblock(state: &mut SagaState, step: usize, undo: bool, decision: &mut Decision) {
    let is_it = |stuck: &Stuck| stuck.step == step && stuck.undo == undo;
    state.stuck_too.retain(|stuck| !is_it(stuck));
    if state.stuck.take_if(|stuck| is_it(stuck)).is_some() {
        next_stuck(state, decision);
    }
}

/// The turn of what else needs a person.
pub(super) fn next_stuck(state: &mut SagaState, decision: &mut Decision) {
    if state.stuck.is_none() && !state.stuck_too.is_empty() {
        state.stuck = Some(state.stuck_too.remove(0));
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
            state.stuck_too.push(Stuck { step, undo, reason, input: None });
            decision.blocked.push(step);
            next_stuck(state, decision);
        }
        _ if undo => undone(shape, state, step, RecordedOutcome::Skipped, decision),
        _ => settle(state, step, StepPhase::Skipped, RecordedOutcome::Skipped, decision),
    }
}
