//! Mutants of the engine that are wrong about groups, lists and choices: the checker gets the definition as it is
//! written, the engine gets another one.

use saga_core::machine::{Shape, UndoShape};

use super::definition::SimDefinition;
use crate::sim::schedule::Mutant;

/// The definition as that mutant has it.
pub(crate) fn mutated(definition: &SimDefinition, mutant: Mutant) -> SimDefinition {
    let change = match mutant {
        Mutant::JoinsEarly => join_early,
        Mutant::ForgetsBranches => forget_a_branch,
        Mutant::DetachesBranches => detach,
        Mutant::ForgetsItems => forget_items,
        Mutant::RunsEveryArm => run_every_arm,
        Mutant::ForgetsArms => forget_arms,
        Mutant::ForgetsSubSagas => forget_sub_sagas,
        _ => return definition.clone(),
    };
    SimDefinition::new(definition.saga.misjudged(change), definition.variant.clone())
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
