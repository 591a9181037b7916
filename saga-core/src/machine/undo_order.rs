//! Which undos may run now. Two steps are undone in the reverse order of their positions if one of them comes after the
//! other in the definition; steps of two branches are undone concurrently.

use std::cmp::Reverse;

use super::state::shape::{Shape, UndoShape};
use super::state::state::SagaState;
use super::state::step_state::StepPhase;

/// Whether the step took effect or may have, and has an undo.
pub(super) fn needs_undo(shape: &Shape, state: &SagaState, step: usize) -> bool {
    shape.undo(state, step) != UndoShape::NotNeeded
        && matches!(state.steps[step].phase, StepPhase::Done | StepPhase::Unknown)
}

/// The steps whose undos wait for no other undo. The items of one list are branches: the latest is undone first, and no more
/// of them concurrently than are done concurrently.
pub(super) fn next_undos(shape: &Shape, state: &SagaState) -> Vec<usize> {
    let all = StepUndos::of_saga(shape, state);
    let mut next = Vec::new();
    for one in &all {
        let others = || all.iter().filter(|other| one.is_ordered_with(other));
        if others().any(|other| other.running > 0) {
            continue;
        }
        let latest_other = others().filter_map(StepUndos::latest).max();
        let mut free: Vec<(u32, usize)> =
            one.waiting.iter().copied().filter(|(position, _)| Some(*position) > latest_other).collect();
        free.sort_unstable_by_key(|(position, _)| Reverse(*position));
        let room = shape.each(one.base).unwrap_or(1).saturating_sub(one.running);
        next.extend(free.iter().take(room).map(|(_, step)| *step));
    }
    next.sort_unstable();
    next
}

/// The undos of a step of the definition, or of its items.
struct StepUndos {
    base: usize,
    /// By index, whether that step comes before this one.
    ancestors: Vec<bool>,
    /// The undos that have not begun, with the positions of their steps.
    waiting: Vec<(u32, usize)>,
    /// How many undos are running.
    running: usize,
}

impl StepUndos {
    fn of_saga(shape: &Shape, state: &SagaState) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        let mut places = vec![None; shape.steps.len()];
        for step in 0..state.steps.len() {
            let is_running = state.steps[step].phase == StepPhase::Undoing;
            if !is_running && !needs_undo(shape, state, step) {
                continue;
            }
            let base = state.base(step);
            let place = *places[base].get_or_insert_with(|| {
                all.push(Self { base, ancestors: shape.ancestors(base), waiting: Vec::new(), running: 0 });
                all.len() - 1
            });
            if is_running {
                all[place].running += 1;
            } else {
                all[place].waiting.push((state.steps[step].position, step));
            }
        }
        all
    }

    /// Whether one of the two comes after the other in the definition.
    fn is_ordered_with(&self, other: &Self) -> bool {
        other.ancestors[self.base] || self.ancestors[other.base]
    }

    /// The highest position among the undos that have not begun.
    fn latest(&self) -> Option<u32> {
        self.waiting.iter().map(|(position, _)| *position).max()
    }
}
