//! Shapes that a builder accepts, and what can be said of failures.

use proptest::prelude::*;
use saga_core::machine::{Effect, Failure, FailureKind, Shape, StepShape, UndoShape};
use saga_core::{Rejection, StepError};

use crate::arms::choices;

pub(crate) const NAMES: [&str; 24] = [
    "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s", "t", "u", "v", "w",
    "x",
];

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
        StepShape::new(NAMES[index], effect, undo)
    };
    Shape { steps: steps.iter().enumerate().map(step).collect(), pivot }
}

/// One to three pieces, each a step or a group of two or three branches. A branch is one step, two, or a step with a
/// group of two behind it. The pivot, if there is one, is a piece of its own.
pub(crate) fn groups() -> impl Strategy<Value = Shape> {
    let piece = prop_oneof![Just(Vec::new()), prop::collection::vec(0..3_u8, 2..=3)];
    let kinds = prop::collection::vec((any::<u8>(), any::<u8>()), 24);
    let pieces = prop::collection::vec(piece, 1..=2);
    (pieces, kinds, prop::option::of(0..2_usize)).prop_map(|(pieces, kinds, pivot)| {
        let mut after: Vec<Vec<usize>> = Vec::new();
        let (mut tips, mut pivot_step) = (Vec::new(), None);
        let add = |after: &mut Vec<Vec<usize>>, tips: &[usize]| {
            after.push(tips.to_vec());
            after.len() - 1
        };
        for (number, branches) in pieces.iter().enumerate() {
            if branches.is_empty() {
                tips = vec![add(&mut after, &tips)];
                pivot_step = pivot_step.or((pivot == Some(number)).then_some(tips[0]));
                continue;
            }
            let mut ends = Vec::new();
            for kind in branches {
                let first = add(&mut after, &tips);
                match kind {
                    0 => ends.push(first),
                    1 => ends.push(add(&mut after, &[first])),
                    _ => ends.extend([add(&mut after, &[first]), add(&mut after, &[first])]),
                }
            }
            tips = ends;
        }
        let step = |(index, after): (usize, Vec<usize>)| {
            let (effect, undo) = kinds[index];
            let effect = [Effect::Transactional, Effect::External, Effect::Remote { service: "elsewhere" }]
                [usize::from(effect) % 3];
            let must_have_one = pivot_step.is_none_or(|pivot| index < pivot);
            let undo = match undo % 4 {
                0 => UndoShape::NeedsOutput,
                1 => UndoShape::NotNeeded,
                2 if !must_have_one => UndoShape::Missing,
                _ => UndoShape::TakesUnknown,
            };
            let is_plain = after == index.checked_sub(1).into_iter().collect::<Vec<_>>();
            StepShape { after: (!is_plain).then_some(after), ..StepShape::new(NAMES[index], effect, undo) }
        };
        Shape { steps: after.into_iter().enumerate().map(step).collect(), pivot: pivot_step }
    })
}

/// Shapes in which some steps are done for each item of a list, here or in another service: never the pivot.
pub(crate) fn lists() -> impl Strategy<Value = Shape> {
    let marks = prop::collection::vec(prop::option::of(1..=3_usize), 24);
    (prop_oneof![shape(), groups(), choices()], marks).prop_map(|(mut shape, marks)| {
        for (index, step) in shape.steps.iter_mut().enumerate() {
            if shape.pivot != Some(index) && step.effect != Effect::Own {
                step.each = marks[index];
            }
        }
        shape
    })
}

/// Shapes in which some steps only wait, for a time or for a signal: with nothing to undo, and never the pivot.
pub(crate) fn idlers() -> impl Strategy<Value = Shape> {
    let own = prop_oneof![Just(Effect::Own), Just(Effect::Signal)];
    let marks = prop::collection::vec(prop::option::weighted(0.4, own), 24);
    (prop_oneof![shape(), groups(), lists(), choices()], marks).prop_map(|(mut shape, marks)| {
        for (index, step) in shape.steps.iter_mut().enumerate() {
            let may_wait = shape.pivot != Some(index) && step.each.is_none() && !step.is_choice();
            if let Some(effect) = marks[index].filter(|_| may_wait) {
                (step.effect, step.undo) = (effect, UndoShape::NotNeeded);
            }
        }
        shape
    })
}

pub(crate) fn rejection(reason: &str) -> Rejection {
    StepError::reject(reason).rejection().cloned().expect("a rejection was made")
}

pub(crate) fn failure(step: usize, kind: FailureKind) -> Failure {
    Failure { step, kind, reason: rejection("no") }
}
