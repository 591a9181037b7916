//! Shapes with choices that a builder accepts.

use proptest::prelude::*;
use saga_core::machine::{ArmOf, Effect, Shape, StepShape, UndoShape};

use crate::shapes::NAMES;

/// So many steps are enough for what can happen between them.
const STEPS_MAX: usize = 14;
const ARMS: [&str; 3] = ["x", "y", "z"];

/// One to three pieces, each a step (some are sagas of their own), a group of two branches, or a choice of one to three arms. Branches and arms are of
/// pieces again, and an arm may be empty. The pivot, if there is one, is a piece of its own.
pub(crate) fn choices() -> impl Strategy<Value = Shape> {
    (prop::collection::vec(any::<u8>(), 120), 1..=3_usize, prop::option::of(0..3_usize)).prop_map(
        |(tape, pieces, pivot)| {
            let mut growing = Growing { tape: tape.into_iter(), steps: Vec::new(), tips: Vec::new(), within: None };
            let mut pivot_step = None;
            for piece in 0..pieces {
                let before = growing.steps.len();
                if pivot == Some(piece) && pivot_step.is_none() {
                    growing.step();
                    pivot_step = Some(before);
                } else {
                    growing.piece(0);
                }
            }
            let before_pivot = pivot_step.unwrap_or(growing.steps.len());
            for step in &mut growing.steps[..before_pivot] {
                if step.undo == UndoShape::Missing {
                    step.undo = UndoShape::TakesUnknown;
                }
            }
            Shape { steps: growing.steps, pivot: pivot_step }
        },
    )
}

struct Growing {
    tape: std::vec::IntoIter<u8>,
    steps: Vec<StepShape>,
    tips: Vec<usize>,
    within: Option<ArmOf>,
}

impl Growing {
    fn next(&mut self, below: u8) -> u8 {
        self.tape.next().unwrap_or_default() % below
    }

    fn add(&mut self, shape: StepShape) -> usize {
        let index = self.steps.len();
        let after = std::mem::replace(&mut self.tips, vec![index]);
        let is_plain = after == index.checked_sub(1).into_iter().collect::<Vec<_>>();
        self.steps.push(StepShape { after: (!is_plain).then_some(after), within: self.within, ..shape });
        index
    }

    fn step(&mut self) {
        let effect = [Effect::Transactional, Effect::External, Effect::Remote { service: "elsewhere" }, Effect::Own];
        let effect = effect[usize::from(self.next(4))];
        // A saga of its own is all that the engine does itself and has undone.
        let child = (effect == Effect::Own).then(|| "sub".to_owned());
        let undo = [UndoShape::NeedsOutput, UndoShape::NotNeeded, UndoShape::TakesUnknown, UndoShape::Missing];
        let undo = undo[usize::from(self.next(4))];
        self.add(StepShape { child, ..StepShape::new(NAMES[self.steps.len()], effect, undo) });
    }

    fn piece(&mut self, depth: u8) {
        let kind = if depth > 2 || self.steps.len() + 4 > STEPS_MAX { 0 } else { self.next(5) };
        match kind {
            0 | 1 => self.step(),
            2 => {
                let from = self.tips.clone();
                let mut ends = Vec::new();
                for _ in 0..2 {
                    self.tips.clone_from(&from);
                    self.piece(depth + 1);
                    ends.append(&mut self.tips);
                }
                self.tips = ends;
            }
            _ => self.choice(depth),
        }
    }

    fn choice(&mut self, depth: u8) {
        let choice = self.add(StepShape::new(NAMES[self.steps.len()], Effect::Own, UndoShape::NotNeeded));
        let (within, arms, is_total) = (self.within, usize::from(self.next(3)) + 1, self.next(2) == 0);
        let mut ends = if is_total { Vec::new() } else { vec![choice] };
        for arm in 0..arms {
            (self.tips, self.within) = (vec![choice], Some(ArmOf { choice, arm }));
            for _ in 0..self.next(3) {
                if self.steps.len() < STEPS_MAX {
                    self.piece(depth + 1);
                }
            }
            ends.append(&mut self.tips);
        }
        ends.dedup();
        self.steps[choice].arms = ARMS[..arms].to_vec();
        (self.tips, self.within) = (ends, within);
    }
}
