//! The choices of a saga that migrates. What was chosen stays chosen, and steps in the other arms are not taken. Where the
//! saga is past a choice that it never made, the migration says which arm counts as taken.

use std::collections::BTreeMap;

use super::route::{Migrated, Route};
use crate::machine::decision::Record;
use crate::machine::state::shape::Shape;
use crate::machine::state::state::{Phase, SagaState};
use crate::machine::state::step_state::StepPhase;
use crate::store::RecordedOutcome;

/// The choices of the new version that are made, each with the arm that was taken.
pub(super) type Taken = BTreeMap<usize, Option<usize>>;

/// Whether the step has begun, so that its state moves with it.
pub(super) const fn has_begun(phase: StepPhase) -> bool {
    !matches!(phase, StepPhase::Ready | StepPhase::NotTaken)
}

/// The arms that were taken, as the new version has them. An arm is the same where its name is; its place may be another.
pub(super) fn taken_there(route: &Route<'_>, made: &[(usize, Option<usize>)], problems: &mut Vec<String>) -> Taken {
    let mut taken = Taken::new();
    for &(choice, arm) in made {
        let Some(place) = route.places[choice] else { continue };
        let Some(arm) = arm else {
            taken.insert(place, None);
            continue;
        };
        match route.arms.get(choice).and_then(|arms| *arms.get(arm)?) {
            Some(arm) => _ = taken.insert(place, Some(arm)),
            None => problems.push(format!(
                "`{}` was chosen and took its arm `{}`, which the other version does not have; keep the arm, or say which one \
                 it became with `.arm`",
                route.from.steps[choice].name, route.from.steps[choice].arms[arm]
            )),
        }
    }
    taken
}

/// Passes the steps that the migration assumes done, and leaves out the steps in arms that were not taken. Returns which of
/// those have begun, in sentences.
pub(super) fn pass_assumed(route: &Route<'_>, moved: &mut Migrated, taken: &mut Taken) -> Vec<String> {
    let (to, mut problems) = (route.to, Vec::new());
    let begun: Vec<usize> = (0..to.steps.len()).filter(|&step| has_begun(moved.state.steps[step].phase)).collect();
    // A choice comes before the steps in its arms.
    for step in 0..to.steps.len() {
        let has_begun = begun.contains(&step);
        if is_in_another_arm(to, &moved.state, taken, step) {
            if has_begun {
                problems.push(begun_in_another_arm(to, taken, step));
            } else {
                moved.state.steps[step].phase = StepPhase::NotTaken;
            }
        } else if !has_begun && is_past(to, &moved.state, &begun, step) {
            pass_one(route, moved, taken, step);
        }
    }
    problems
}

/// Whether the step is in an arm that was not taken, or in a choice that is.
fn is_in_another_arm(to: &Shape, state: &SagaState, taken: &Taken, step: usize) -> bool {
    to.steps[step].within.is_some_and(|within| {
        let is_other = taken.get(&within.choice).is_some_and(|arm| *arm != Some(within.arm));
        is_other || state.steps[within.choice].phase == StepPhase::NotTaken
    })
}

/// Whether a step has begun that comes after this one. A compensating saga begins no step any more, so it is past a choice
/// only where a step in an arm of it has begun.
fn is_past(to: &Shape, state: &SagaState, begun: &[usize], step: usize) -> bool {
    begun.iter().any(|&later| match state.phase {
        Phase::Running => to.is_behind(later, step),
        _ => to.arms_around(later).any(|arm| arm.choice == step),
    })
}

fn pass_one(route: &Route<'_>, moved: &mut Migrated, taken: &mut Taken, step: usize) {
    if route.to.is_choice(step) {
        let Some(&(_, arm)) = route.assumed_arms.iter().find(|(choice, _)| *choice == step) else { return };
        taken.insert(step, arm);
    } else if !route.assumed_done.contains(&step) {
        return;
    }
    let position = moved.state.next_position();
    (moved.state.steps[step].phase, moved.state.steps[step].position) = (StepPhase::Skipped, position);
    moved.records.push(Record::of_step(step, RecordedOutcome::Skipped, position));
}

fn begun_in_another_arm(to: &Shape, taken: &Taken, step: usize) -> String {
    let arms = || to.arms_around(step).map(|arm| (arm, taken.get(&arm.choice)));
    let other =
        arms().find_map(|(arm, taken)| taken.filter(|taken| **taken != Some(arm.arm)).map(|taken| (arm, taken)));
    let name = to.steps[step].name;
    // A choice around it is left out only where an arm was not taken.
    let Some((arm, taken)) = other else { return format!("`{name}` has begun, and is passed by in the other version") };
    let choice = &to.steps[arm.choice];
    let was = taken.map_or("none of its arms".to_owned(), |taken| format!("the arm `{}`", choice.arms[taken]));
    format!(
        "`{name}` has begun, and stands in the other version in the arm `{}` of `{}`, of which this saga took {was}",
        choice.arms[arm.arm], choice.name
    )
}

/// The steps that have begun in arms of choices that are not made.
pub(super) fn begun_before_choices(shape: &Shape, state: &SagaState, taken: &Taken) -> Vec<String> {
    let mut problems = Vec::new();
    for (step, of) in shape.steps.iter().enumerate().filter(|(step, _)| has_begun(state.steps[*step].phase)) {
        for arm in shape.arms_around(step).filter(|arm| !taken.contains_key(&arm.choice)) {
            let choice = shape.steps[arm.choice].name;
            problems.push(format!(
                "`{}` has begun, and stands in the other version in an arm of `{choice}`, which has not been chosen{}",
                of.name,
                remedy_of_choice(shape, state, arm.choice)
            ));
        }
    }
    problems
}

/// The choice that decides whether an earlier step ever runs: the outermost choice around it that is not made, and that the
/// later step is not in.
pub(super) fn undecided(shape: &Shape, taken: &Taken, before: usize, later: usize) -> Option<usize> {
    let is_around = |choice: usize| shape.arms_around(later).any(|arm| arm.choice == choice);
    let around = shape.arms_around(before).map(|arm| arm.choice);
    around.filter(|choice| !taken.contains_key(choice) && !is_around(*choice)).last()
}

/// How to migrate a saga that is past a choice which it never made.
pub(super) fn remedy_of_choice(shape: &Shape, state: &SagaState, choice: usize) -> String {
    if state.steps[choice].phase != StepPhase::Ready {
        return String::new();
    }
    let (name, arms) = (shape.steps[choice].name, &shape.steps[choice].arms);
    format!("; say which arm counts as taken, with `.assume_arm(\"{name}\", \"{}\")`", arms.join("|"))
}
