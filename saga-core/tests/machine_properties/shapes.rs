//! Shapes that a builder accepts, and what can be said of failures.

use proptest::prelude::*;
use saga_core::machine::{Effect, Failure, FailureKind, Shape, StepShape, UndoShape};
use saga_core::{Rejection, StepError};

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// One to six steps. Before the pivot each has a compensation or says that it needs none; the last step of a saga
/// without a declared pivot may have none, and is the pivot then.
pub(crate) fn shape() -> impl Strategy<Value = Shape> {
    let remote = Just(Effect::Remote { service: "elsewhere" });
    let effect = prop_oneof![Just(Effect::Transactional), Just(Effect::External), remote];
    let undo = prop_oneof![
        Just(UndoShape::TakesUnknown),
        Just(UndoShape::NeedsOutput),
        Just(UndoShape::NotNeeded),
        Just(UndoShape::Missing),
    ];
    let steps = prop::collection::vec((effect, undo), 1..=6);
    (steps, prop::option::of(0..6_usize)).prop_map(|(steps, pivot)| build(&steps, pivot))
}

fn build(steps: &[(Effect, UndoShape)], pivot: Option<usize>) -> Shape {
    let declared = pivot.filter(|&pivot| pivot < steps.len());
    let last_is_final = steps.last().is_some_and(|(_, undo)| *undo == UndoShape::Missing);
    let pivot = declared.or(last_is_final.then_some(steps.len() - 1));
    let step = |(index, &(effect, undo)): (usize, &(Effect, UndoShape))| {
        let must_have_one = pivot.is_none_or(|pivot| index < pivot);
        let undo = if must_have_one && undo == UndoShape::Missing { UndoShape::TakesUnknown } else { undo };
        StepShape { name: NAMES[index], effect, undo }
    };
    Shape { steps: steps.iter().enumerate().map(step).collect(), pivot }
}

pub(crate) fn rejection(reason: &str) -> Rejection {
    StepError::reject(reason).into_rejection().expect("a rejection was made")
}

pub(crate) fn failure(step: usize, kind: FailureKind) -> Failure {
    Failure { step, kind, reason: rejection("no") }
}
