//! Which steps begin next while a saga goes forward.

use super::decision::{Command, Decision};
use super::operating::lock_lost::lost_lock;
use super::settle::block;
use super::state::shape::Shape;
use super::state::state::{Phase, SagaState};
use super::state::step_state::StepPhase;

/// Begins a saga: its state, and the commands of the steps that it begins with.
pub fn start(shape: &Shape) -> (SagaState, Vec<Command>) {
    let mut state = SagaState::new(shape.steps.len());
    let mut decision = Decision::default();
    begin_next_steps(shape, &mut state, &mut decision);
    (state, decision.commands)
}

/// Gives out every step whose predecessors are passed, or completes the saga. While the saga is stuck or paused, no step
/// begins.
pub(super) fn begin_next_steps(shape: &Shape, state: &mut SagaState, decision: &mut Decision) {
    if state.stuck.is_some() {
        return;
    }
    let is_paused = state.paused.is_some();
    for step in (0..shape.steps.len()).filter(|_| !is_paused) {
        match state.steps[step].phase {
            StepPhase::Ready if shape.predecessors(step).all(|before| is_passed(state, before)) => {
                begin(shape, state, step, decision);
            }
            StepPhase::FannedOut => begin_next_items(shape, state, step, decision),
            _ => {}
        }
    }
    if (0..shape.steps.len()).all(|step| is_passed(state, step)) {
        state.phase = Phase::Completed;
    }
}

fn begin(shape: &Shape, state: &mut SagaState, step: usize, decision: &mut Decision) {
    state.steps[step].phase = StepPhase::Started;
    match lost_lock(shape, state) {
        None => decision.commands.push(Command::Do { step }),
        Some(reason) => block(shape, state, step, false, reason, decision),
    }
}

fn is_passed(state: &SagaState, step: usize) -> bool {
    state.steps[step].is_passed()
}

/// The items of a list are branches that begin in the order of the list, as many at once as the step allows. When every item
/// is passed, the step itself is given out once more: it joins their outputs.
fn begin_next_items(shape: &Shape, state: &mut SagaState, step: usize, decision: &mut Decision) {
    let items = state.items_of(step).unwrap_or_default();
    if items.clone().all(|item| is_passed(state, item)) {
        return begin(shape, state, step, decision);
    }
    let under_way = state.steps[items.clone()].iter().filter(|item| item.phase == StepPhase::Started).count();
    let room = shape.each(step).unwrap_or(1).saturating_sub(under_way);
    let waiting: Vec<usize> = items.filter(|&item| state.steps[item].phase == StepPhase::Ready).take(room).collect();
    for item in waiting {
        begin(shape, state, item, decision);
    }
}
