//! Engines that are mistaken about groups, lists and choices: the checker is told what the author wrote, the engine something else.

use saga_core::machine::{Shape, UndoShape};

use super::Plant;
use super::definitions::SimDefinition;
use super::moves::second;

/// The definition as an engine with that mistake has it.
pub(super) fn misjudged(definition: &SimDefinition, plant: Plant) -> SimDefinition {
    let change = match plant {
        Plant::JoinsEarly => join_early,
        Plant::ForgetsABranch => forget_a_branch,
        Plant::DetachesBranches => detach,
        Plant::ForgetsItems => forget_items,
        Plant::RunsEveryArm => run_every_arm,
        Plant::ForgetsArms => forget_arms,
        Plant::ForgetsSubSagas => forget_sub_sagas,
        _ => return definition.clone(),
    };
    let saga = definition.saga.misjudged(change);
    SimDefinition { second: second(&saga), saga, ..definition.clone() }
}

fn join_early(shape: &mut Shape) {
    for after in shape.steps.iter_mut().filter_map(|step| step.after.as_mut()) {
        after.truncate(1);
    }
}

fn forget_a_branch(shape: &mut Shape) {
    let branches =
        shape.steps.iter_mut().skip(1).filter(|step| step.after.as_ref().is_some_and(|after| after.len() < 2));
    branches.for_each(|step| step.undo = UndoShape::NotNeeded);
}

fn forget_items(shape: &mut Shape) {
    let lists = shape.steps.iter_mut().filter(|step| step.each.is_some());
    lists.for_each(|step| step.undo = UndoShape::NotNeeded);
}

fn run_every_arm(shape: &mut Shape) {
    shape.steps.iter_mut().for_each(|step| step.within = None);
}

fn forget_arms(shape: &mut Shape) {
    let in_arms = shape.steps.iter_mut().filter(|step| step.within.is_some());
    in_arms.for_each(|step| step.undo = UndoShape::NotNeeded);
}

fn forget_sub_sagas(shape: &mut Shape) {
    let sub_sagas = shape.steps.iter_mut().filter(|step| step.child.is_some());
    sub_sagas.for_each(|step| step.undo = UndoShape::NotNeeded);
}

fn detach(shape: &mut Shape) {
    for after in shape.steps.iter_mut().filter_map(|step| step.after.as_mut()).filter(|after| after.len() == 1) {
        after.clear();
    }
}
