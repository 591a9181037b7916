//! Whether a saga can go on as another version of its definition, and as what.
//!
//! The rules keep G5 through the migration: the new version can undo what took effect, the steps that are under way are steps
//! that the new version would have under way, and no step before them is left out silently.

use super::arms::{Taken, begun_before_choices, has_begun, pass_assumed, remedy_of_choice, taken_there, undecided};
use super::route::{Migrated, Route};
use crate::machine::deadline::remove_if_over;
use crate::machine::lock::held_locks;
use crate::machine::state::failure::Stuck;
use crate::machine::state::items::Items;
use crate::machine::state::shape::{Effect, Shape, Side, UndoShape};
use crate::machine::state::state::{Phase, SagaState};
use crate::machine::state::step_state::{StepPhase, StepState};
use crate::machine::sub_saga::cannot_move;

/// The saga in the steps of the other version. `made` is each choice of its own version that it made, with the arm that it
/// took.
///
/// # Errors
/// Each reason why it cannot go on there, as a sentence that names the step.
pub fn migrate(route: &Route<'_>, state: &SagaState, made: &[(usize, Option<usize>)]) -> Result<Migrated, Vec<String>> {
    let problems = ended_or_hosted(state);
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut problems = steps_that_cannot_move(route, state);
    let mut taken = taken_there(route, made, &mut problems);
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut moved = Migrated { state: carried_over(route, state), records: Vec::new(), withdrawn: Vec::new() };
    problems.extend(pass_assumed(route, &mut moved, &mut taken));
    problems.extend(begun_before_choices(route.to, &moved.state, &taken));
    problems.extend(released_elsewhere(route, state, &moved.state));
    // A compensating saga begins no step any more.
    if state.phase == Phase::Running {
        problems.extend(not_done_before(route, &moved.state, &taken));
        problems.extend(done_in_another_order(route, &moved.state));
    }
    // It may be past the pivot of the other version.
    moved.withdrawn.extend(remove_if_over(route.to, &mut moved.state));
    if problems.is_empty() { Ok(moved) } else { Err(problems) }
}

fn ended_or_hosted(state: &SagaState) -> Vec<String> {
    let mut problems = Vec::new();
    if matches!(state.phase, Phase::Completed | Phase::Compensated) {
        problems.push("it has ended, and stays on the version that it ended with".to_owned());
    }
    if state.caller.is_some() {
        problems.push("it is a step that another service asked for".to_owned());
    }
    problems
}

/// Looks at each step of the old version that has begun, alone.
fn steps_that_cannot_move(route: &Route<'_>, state: &SagaState) -> Vec<String> {
    let mut problems = Vec::new();
    for (index, step) in route.from.steps.iter().enumerate() {
        let name = step.name;
        let phase = state.steps[index].phase;
        let is_open = is_under_way(phase) || state.is_stuck_at(index);
        let Some(place) = route.places[index] else {
            if step.lock && has_begun(phase) {
                problems
                    .push(format!("the saga has the semantic lock `{name}`, and the other version does not take it"));
            } else if is_open {
                problems.push(format!("`{name}` is under way, and the other version does not have it"));
            } else if is_undone_later(route, state, index) {
                problems.push(format!(
                    "`{name}` took effect and can be undone, and without the step it would not be; keep the step, or let such sagas end first"
                ));
            } else if state.items_of(index).is_some()
                || state.failure.as_ref().is_some_and(|failure| state.base(failure.step) == index)
            {
                problems.push(format!("`{name}` has been done for a list, or is why the saga is undone, and the other version does not have it"));
            }
            continue;
        };
        if !has_begun(phase) {
            continue;
        }
        let new = &route.to.steps[place];
        let is_child = step.child.is_some() || new.child.is_some();
        if !is_child && new.name != name && (is_open || step.effect.is_outside() || state.items_of(index).is_some()) {
            problems.push(format!(
                "`{name}` has begun, and its key goes with its name; call the new step by it, with `#[saga_step(name = \"{name}\")]`"
            ));
        }
        if step.each.is_some() != new.each.is_some() {
            problems.push(format!(
                "`{name}` has begun, and is done once in one version and for each item of a list in the other"
            ));
        }
        if step.lock != new.lock || (step.lock && new.name != name) {
            problems.push(format!(
                "`{name}` has begun, and takes a semantic lock that the other version does not take there"
            ));
        }
        problems.extend(cannot_move(step, new));
        if has_other_place(step.effect, new.effect, is_open) {
            problems.push(format!("`{name}` has begun, and its effect lies elsewhere in the other version"));
        }
    }
    if state.phase == Phase::Compensating {
        problems.extend(not_undoable(route, state));
    }
    problems
}

/// The state of a remote step is at its host. A step that is under way stays what it is.
fn has_other_place(was: Effect, is: Effect, is_open: bool) -> bool {
    let is_remote = |effect| matches!(effect, Effect::Remote { .. });
    was != is && (is_open || is_remote(was) || is_remote(is))
}

fn is_under_way(phase: StepPhase) -> bool {
    matches!(phase, StepPhase::Started | StepPhase::Undoing | StepPhase::FannedOut)
}

/// Whether the step, or an item of it, took effect or may have, and would be undone if the saga compensated in either
/// version.
fn is_undone_later(route: &Route<'_>, state: &SagaState, index: usize) -> bool {
    let stands = |step: &StepState| matches!(step.phase, StepPhase::Done | StepPhase::Unknown);
    let items = state.items_of(index).unwrap_or_default();
    let any_stands = std::iter::once(index).chain(items).any(|step| stands(&state.steps[step]));
    any_stands && route.from.steps[index].undo != UndoShape::NotNeeded && !only_goes_forward(route, state)
}

/// Whether the pivots of both versions are done.
fn only_goes_forward(route: &Route<'_>, state: &SagaState) -> bool {
    let is_done = |step: usize| state.steps[step].phase == StepPhase::Done;
    let new = route.to.pivot.and_then(|pivot| route.places.iter().position(|place| *place == Some(pivot)));
    route.from.pivot.is_some_and(is_done) && new.is_some_and(is_done)
}

/// A compensating saga needs, for each step that took effect or may have, an undo that can be called with what is known.
fn not_undoable(route: &Route<'_>, state: &SagaState) -> Vec<String> {
    let mut problems = Vec::new();
    for (index, step) in state.steps.iter().enumerate() {
        let Some(place) = route.places[state.base(index)] else { continue };
        let (name, new) = (route.to.steps[place].name, &route.to.steps[place]);
        let stands =
            matches!(step.phase, StepPhase::Done | StepPhase::Unknown | StepPhase::Undoing | StepPhase::Started);
        if !stands {
            continue;
        }
        if route.to.side(place) != Side::Before {
            problems.push(format!(
                "the saga is being undone, and `{name}` stands at the pivot of the other version or behind it"
            ));
        } else if new.undo == UndoShape::Missing {
            problems.push(format!("the saga is being undone, and `{name}` has no compensation in the other version"));
        } else if step.in_doubt && step.phase != StepPhase::Started && new.undo == UndoShape::NeedsOutput {
            problems.push(format!(
                "`{name}` may or may not have happened, and its compensation in the other version needs its output"
            ));
        } else if step.phase == StepPhase::Undoing && new.undo == UndoShape::NotNeeded {
            problems.push(format!("`{name}` is being undone, and the other version has no compensation for it"));
        }
    }
    problems.extend(undone_in_another_order(route, state));
    problems.dedup();
    problems
}

/// Undos have begun in the order of the old version. They must be a beginning of the order of the new one.
fn undone_in_another_order(route: &Route<'_>, state: &SagaState) -> Vec<String> {
    let mut problems = Vec::new();
    let place = |step: usize| route.places[state.base(step)];
    for (index, step) in state.steps.iter().enumerate() {
        let (Some(to), phase) = (place(index), step.phase) else { continue };
        let has_begun = matches!(phase, StepPhase::Undoing | StepPhase::Undone | StepPhase::UndoSkipped);
        for (other, later) in state.steps.iter().enumerate() {
            let Some(later_to) = place(other).filter(|later_to| route.to.is_behind(*later_to, to)) else { continue };
            let was_behind = route.from.is_behind(state.base(other), state.base(index));
            let stands = matches!(later.phase, StepPhase::Done | StepPhase::Unknown);
            let was_undone = route.from.steps[state.base(other)].undo != UndoShape::NotNeeded;
            let is_undone = route.to.steps[later_to].undo != UndoShape::NotNeeded;
            let names = || (route.to.steps[to].name, route.to.steps[later_to].name);
            if has_begun && stands && is_undone && later.position > step.position && !(was_behind && was_undone) {
                let (name, later) = names();
                problems.push(format!(
                    "the undo of `{name}` has begun, and that of `{later}` would come before it in the other version"
                ));
            } else if is_under_way(phase) && is_under_way(later.phase) && !was_behind {
                let (name, later) = names();
                problems.push(format!(
                    "`{name}` and `{later}` are under way at once, and stand one behind the other in the other version"
                ));
            }
        }
    }
    problems
}

fn carried_over(route: &Route<'_>, state: &SagaState) -> SagaState {
    let (old, new) = (route.from.steps.len(), route.to.steps.len());
    // Nothing refers to steps that are removed.
    let place = |step: usize| if step < old { route.places[step].unwrap_or(0) } else { step - old + new };
    let mut steps = vec![StepState::new(); new];
    for (index, to) in route.places.iter().enumerate() {
        if let Some(to) = *to {
            steps[to] = state.steps[index];
            if state.steps[index].phase == StepPhase::NotTaken {
                // The choices of the other version say whether it runs.
                steps[to].phase = StepPhase::Ready;
            }
        }
    }
    steps.extend_from_slice(&state.steps[old..]);
    let stuck = |stuck: &Stuck| Stuck { step: place(stuck.step), ..stuck.clone() };
    let mut items: Vec<Items> = state.items.clone();
    for items in &mut items {
        (items.step, items.first) = (place(items.step), place(items.first));
    }
    let mut moved = state.clone();
    moved.failure = moved.failure.map(|mut failure| {
        failure.step = place(failure.step);
        failure
    });
    moved.stuck = state.stuck.as_ref().map(stuck);
    moved.also_stuck = state.also_stuck.iter().map(stuck).collect();
    moved.reports.iter_mut().for_each(|kept| kept.step = place(kept.step));
    (moved.steps, moved.items) = (steps, items);
    moved
}

/// A lock that the saga has released belongs to another saga by now, and one that it has would be released by no step any more.
fn released_elsewhere(route: &Route<'_>, state: &SagaState, moved: &SagaState) -> Vec<String> {
    let names =
        |shape: &Shape, state| held_locks(shape, state).into_iter().map(|lock| shape.steps[lock].name).collect();
    let (before, after): (Vec<_>, Vec<_>) = (names(route.from, state), names(route.to, moved));
    let again = after.iter().filter(|name| !before.contains(name));
    let again = again.map(|name| {
        format!("it has released its semantic lock `{name}`, and would have it again in the other version")
    });
    let for_ever = before.iter().filter(|name| !after.contains(name));
    let for_ever = for_ever.map(|name| {
        format!("it has the semantic lock `{name}`, and the other version releases it at a step that is done already")
    });
    again.chain(for_ever).collect()
}

/// The steps before each step that has begun must be done.
fn not_done_before(route: &Route<'_>, state: &SagaState, taken: &Taken) -> Vec<String> {
    let (shape, mut problems) = (route.to, Vec::new());
    for (step, of) in shape.steps.iter().enumerate().filter(|(step, _)| has_begun(state.steps[*step].phase)) {
        for before in shape.predecessors(step) {
            let is_around = shape.arms_around(step).any(|arm| arm.choice == before);
            if state.steps[before].is_passed() || (is_around && shape.is_choice(before)) {
                continue;
            }
            let before = undecided(shape, taken, before, step).unwrap_or(before);
            let remedy = match state.steps[before].phase {
                _ if shape.is_choice(before) => remedy_of_choice(shape, state, before),
                StepPhase::Ready if may_be_passed(route, before) => {
                    let (name, is_sleep) = (shape.steps[before].name, shape.steps[before].is_sleep());
                    let of_step = || ".assume_done::<step>()".to_owned();
                    let pass = if is_sleep { format!(".assume_slept(\"{name}\")") } else { of_step() };
                    format!("; if it is not needed there, say so with `{pass}`")
                }
                _ => String::new(),
            };
            problems.push(format!(
                "`{}` has begun, and `{}`, which comes before it in the other version, has not been done{remedy}",
                of.name, shape.steps[before].name
            ));
        }
    }
    problems.dedup();
    problems
}

/// Whether the migration may assume the step done: it is new, or in an arm of its own version.
fn may_be_passed(route: &Route<'_>, step: usize) -> bool {
    let old = route.places.iter().position(|place| *place == Some(step));
    old.is_none_or(|old| route.from.steps[old].within.is_some())
}

/// Steps that are done were done in the order of the new version, or they would not be undone in that order. When a choice
/// was made does not matter, since it has no undo.
fn done_in_another_order(route: &Route<'_>, state: &SagaState) -> Vec<String> {
    let (shape, mut problems) = (route.to, Vec::new());
    let old = |step: usize| route.places.iter().position(|place| *place == Some(step));
    let is_done = |step: &usize| state.steps[*step].phase == StepPhase::Done && !shape.is_choice(*step);
    for step in (0..shape.steps.len()).filter(is_done) {
        let ancestors = shape.ancestors(step);
        for before in (0..shape.steps.len()).filter(|before| ancestors[*before]).filter(is_done) {
            // A success that was reported late was late in the old version as well.
            let was_so = old(step).zip(old(before)).is_some_and(|(step, before)| route.from.is_behind(step, before));
            if state.steps[before].position > state.steps[step].position && !was_so {
                problems.push(format!(
                    "`{}` was done before `{}`, and comes behind it in the other version",
                    shape.steps[step].name, shape.steps[before].name
                ));
            }
        }
    }
    problems
}
