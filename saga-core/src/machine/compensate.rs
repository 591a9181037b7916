use super::decision::{Command, Decision, Record, Revision};
use super::shape::{Effect, Shape, UndoShape};
use super::state::{Failure, FailureKind, Phase, SagaState, StepPhase};
use super::timer::end_idle;
use super::transition::{block, done, unblock};
use crate::store::RecordedOutcome;

/// The saga turns round: nothing new of it begins.
pub(super) fn begin_compensation(
    shape: &Shape,
    state: &mut SagaState,
    failure: Option<Failure>,
    decision: &mut Decision,
) {
    state.phase = Phase::Compensating;
    let is_called_off = |failure: &Failure| matches!(failure.kind, FailureKind::Cancelled | FailureKind::Deadline);
    if !failure.as_ref().is_some_and(is_called_off) {
        end_idle(shape, state, decision);
    }
    state.failure = state.failure.take().or(failure);
    go_on_undoing(shape, state, decision);
}

/// Gives out every undo whose turn has come, or ends the saga. Nothing is undone while a step of the saga is in flight,
/// since that may yet take effect after everything else, and must then be undone first. The reverse order of the
/// positions holds along each way through the definition; steps of two branches are undone side by side.
pub(super) fn go_on_undoing(shape: &Shape, state: &mut SagaState, decision: &mut Decision) {
    if state.stuck.is_some() || state.steps.iter().any(|step| step.phase == StepPhase::Started) {
        return;
    }
    let is_undoing = state.steps.iter().any(|step| step.phase == StepPhase::Undoing);
    let last = (0..state.steps.len())
        .filter(|&step| is_to_be_undone(shape, state, step))
        .max_by_key(|&step| state.steps[step].position);
    match last {
        None if !is_undoing => state.phase = Phase::Compensated,
        None => {}
        Some(_) if state.paused.is_some() => {}
        Some(_) if !shape.is_sequence() => {
            for step in unblocked(shape, state) {
                begin_undo(shape, state, step, decision);
            }
        }
        Some(_) if is_undoing => {}
        Some(step) => begin_undo(shape, state, step, decision),
    }
}

fn is_to_be_undone(shape: &Shape, state: &SagaState, step: usize) -> bool {
    shape.undo(state, step) != UndoShape::NotNeeded
        && matches!(state.steps[step].phase, StepPhase::Done | StepPhase::Unknown)
}

/// The steps whose undo waits for no other: each other that is undone now, or came to stand later and is still to be
/// undone, stands in another branch. Items of one list are branches beside each other, the latest of which are undone
/// first, and not more at once than are done at once.
fn unblocked(shape: &Shape, state: &SagaState) -> Vec<usize> {
    let mut lines = Lines::of(shape, state);
    let mut free = Vec::new();
    for place in 0..lines.lines.len() {
        let first_wait = lines.later_than(place);
        let line = &mut lines.lines[place];
        line.open.retain(|(position, _)| *position > first_wait);
        line.open.sort_unstable_by_key(|(position, _)| std::cmp::Reverse(*position));
        let room = shape.each(line.base).unwrap_or(1).saturating_sub(line.undoing);
        free.extend(line.open.iter().take(room).map(|(_, step)| *step));
    }
    free.sort_unstable();
    free
}

/// What is open of the undoing, by the steps of the definition.
struct Lines {
    lines: Vec<Line>,
}

/// A step, or the items of one.
struct Line {
    base: usize,
    ancestors: Vec<bool>,
    /// What is to be undone, with its position.
    open: Vec<(u32, usize)>,
    /// How many are undone now.
    undoing: usize,
    /// The highest position of all these. What is undone now stands behind everything.
    latest: u32,
}

impl Lines {
    fn of(shape: &Shape, state: &SagaState) -> Self {
        let mut lines: Vec<Line> = Vec::new();
        let mut at = vec![None; shape.steps.len()];
        for step in 0..state.steps.len() {
            let is_undoing = state.steps[step].phase == StepPhase::Undoing;
            if !is_undoing && !is_to_be_undone(shape, state, step) {
                continue;
            }
            let base = state.base(step);
            let place = *at[base].get_or_insert_with(|| {
                lines.push(Line { base, ancestors: shape.ancestors(base), open: Vec::new(), undoing: 0, latest: 0 });
                lines.len() - 1
            });
            let (line, position) = (&mut lines[place], state.steps[step].position);
            if is_undoing {
                line.undoing += 1;
                line.latest = u32::MAX;
            } else {
                line.open.push((position, step));
                line.latest = line.latest.max(position);
            }
        }
        Self { lines }
    }

    /// The latest of what stands on one way with that line: what came before it has to wait.
    fn later_than(&self, place: usize) -> u32 {
        let line = &self.lines[place];
        let is_on_one_way = |other: &&Line| other.ancestors[line.base] || line.ancestors[other.base];
        self.lines.iter().filter(is_on_one_way).map(|other| other.latest).max().unwrap_or_default()
    }
}

fn begin_undo(shape: &Shape, state: &mut SagaState, step: usize, decision: &mut Decision) {
    let undone = &mut state.steps[step];
    undone.phase = StepPhase::Undoing;
    undone.undo_round += 1;
    let (round, known) = (undone.undo_round, !undone.in_doubt);
    let reason = match shape.undo(state, step) {
        UndoShape::Missing if known => "it took effect, and there is no compensation for it",
        UndoShape::Missing => "it may have taken effect, and there is no compensation for it",
        UndoShape::NeedsOutput if !known => {
            "a call that was not answered ended after the step was decided without it: it may have happened, and its \
             compensation needs its output"
        }
        _ => return decision.commands.push(Command::Undo { step, round, known }),
    };
    block(shape, state, step, true, reason.to_owned(), decision);
}

/// A step was undone by a call of its compensation.
pub(super) fn called_back(shape: &Shape, state: &mut SagaState, step: usize, informed: bool, decision: &mut Decision) {
    if state.steps[step].phase == StepPhase::Undoing {
        state.steps[step].undo_uninformed |= !informed;
        undone(shape, state, step, RecordedOutcome::Done, decision);
    }
}

pub(super) fn undone(
    shape: &Shape,
    state: &mut SagaState,
    step: usize,
    outcome: RecordedOutcome,
    decision: &mut Decision,
) {
    if state.steps[step].phase != StepPhase::Undoing {
        return;
    }
    let position = state.next_position();
    let undone = &mut state.steps[step];
    let record = Record { step, undo_round: Some(undone.undo_round), outcome, position };
    decision.insert(record);
    // A reply to it says nothing new.
    undone.undo_sent = None;
    let (was_late, was_blind) = (std::mem::take(&mut undone.late), std::mem::take(&mut undone.undo_uninformed));
    if was_late && was_blind && outcome == RecordedOutcome::Done {
        // This undo was called before the success was known: it is due again, with the output and under another key. Where
        // it is only known that there was one more call, it is due again without it.
        undone.phase = if undone.in_doubt { StepPhase::Unknown } else { StepPhase::Done };
        undone.position = position;
        if state.phase == Phase::Compensated {
            state.phase = Phase::Compensating;
        }
    } else {
        undone.phase = if outcome == RecordedOutcome::Done { StepPhase::Undone } else { StepPhase::UndoSkipped };
    }
    unblock(state, step, true, decision);
    if state.phase == Phase::Compensating {
        go_on_undoing(shape, state, decision);
    }
}

/// Whoever decides must know that there may be nothing to undo yet: a call of the step may still arrive.
pub(super) fn undo_blocked(shape: &Shape, state: &mut SagaState, step: usize, reason: String, decision: &mut Decision) {
    let warning =
        if state.steps[step].in_doubt { "; the step itself may have happened or not, and may still" } else { "" };
    block(shape, state, step, true, reason + warning, decision);
}

/// A success comes in for a step that was decided without it. The record says from now on that it was done, and
/// where the saga compensates or has compensated, the step is undone, or undone again.
pub(super) fn late(shape: &Shape, state: &mut SagaState, step: usize, decision: &mut Decision) {
    let said = &mut state.steps[step];
    let expected = match said.phase {
        StepPhase::Rejected => RecordedOutcome::Rejected,
        StepPhase::Failed => RecordedOutcome::Failed,
        StepPhase::Cancelled => RecordedOutcome::Cancelled,
        StepPhase::Skipped => RecordedOutcome::Skipped,
        // It had not been decided: the success decides it.
        StepPhase::Started => return done(shape, state, step, decision),
        _ if said.in_doubt => RecordedOutcome::Unknown,
        // It is known to be done: the same success came twice.
        _ => return,
    };
    decision.revision = Some(Revision { step, expected, outcome: RecordedOutcome::Done });
    said.in_doubt = false;
    if said.phase == StepPhase::Undoing {
        said.late = true;
        return;
    }
    let position = state.next_position();
    state.steps[step].phase = StepPhase::Done;
    state.steps[step].position = position;
    if matches!(state.phase, Phase::Compensating | Phase::Compensated) {
        state.phase = Phase::Compensating;
        go_on_undoing(shape, state, decision);
    }
}

/// A call ended without a definite answer after the step was decided, or undone, without it. The step may have happened
/// after all: it is undone, or undone again, as far as that can be done without its output.
pub(super) fn late_unknown(shape: &Shape, state: &mut SagaState, step: usize, decision: &mut Decision) {
    let turned_round = matches!(state.phase, Phase::Compensating | Phase::Compensated);
    let is_needed = shape.undo(state, step) != UndoShape::NotNeeded;
    if !turned_round || !is_needed || shape.effect(state, step) != Effect::External {
        return;
    }
    let said = &mut state.steps[step];
    let expected = match said.phase {
        StepPhase::Rejected => Some(RecordedOutcome::Rejected),
        StepPhase::Failed => Some(RecordedOutcome::Failed),
        StepPhase::Cancelled => Some(RecordedOutcome::Cancelled),
        // Its undo knew of no success, and came before the end of this call.
        StepPhase::Undone if said.in_doubt => None,
        StepPhase::Undoing if said.in_doubt => {
            said.late = true;
            return;
        }
        _ => return,
    };
    decision.revision = expected.map(|expected| Revision { step, expected, outcome: RecordedOutcome::Unknown });
    let position = state.next_position();
    let said = &mut state.steps[step];
    (said.phase, said.position, said.in_doubt) = (StepPhase::Unknown, position, true);
    state.phase = Phase::Compensating;
    go_on_undoing(shape, state, decision);
}
