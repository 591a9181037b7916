use std::fmt;
use std::marker::PhantomData;

use super::parts::Parts;
use super::{SagaProblem, StepBuilder};
use crate::step::Payload;
use crate::store::Store;

/// A parallel group that gets its branches, of a saga with the input `I` ([`SagaBuilder::parallel`](super::SagaBuilder::parallel)).
pub struct Group<S: Store, I> {
    parts: Parts<S>,
    /// The steps that every branch comes after.
    from: Vec<usize>,
    /// The last steps of the branches.
    ends: Vec<usize>,
    /// How many steps can be under way at once outside the group, and inside.
    width_around: usize,
    width: usize,
    input: PhantomData<fn(I)>,
}

/// A branch that gets its steps, which run one after the other: beside those of the other branches of a parallel group,
/// or instead of those of the other arms of a choice.
pub type Branch<S, I> = StepBuilder<S, I, Nested>;

/// Stands for a part of a saga, while it gets its steps.
#[derive(Debug)]
pub struct Nested;

impl<S: Store, I> Group<S, I> {
    pub(super) fn begin(mut parts: Parts<S>) -> Self {
        parts.depth += 1;
        let (from, width_around) = (std::mem::take(&mut parts.tips), parts.width);
        Self { parts, from, ends: Vec::new(), width_around, width: 0, input: PhantomData }
    }

    pub(super) fn end(self) -> Parts<S> {
        let Self { mut parts, from, ends, width_around, width, .. } = self;
        parts.depth -= 1;
        if ends.is_empty() {
            parts.problems.push(SagaProblem::Group(
                "a parallel group has no branch; add some with `.branch(|branch| branch.step::<name>())`",
            ));
        }
        parts.tips = if ends.is_empty() { from } else { ends };
        parts.width = width_around.max(width);
        parts
    }
}

impl<S: Store, I: Payload> Group<S, I> {
    /// Adds a branch.
    #[must_use]
    pub fn branch(mut self, steps: impl FnOnce(Branch<S, I>) -> Branch<S, I>) -> Self {
        let before = self.parts.steps.len();
        self.parts.tips.clone_from(&self.from);
        self.parts.width = 1;
        self.parts = steps(StepBuilder::new(self.parts, Nested)).parts;
        if self.parts.steps.len() == before {
            self.parts.problems.push(SagaProblem::Group(
                "a branch of a parallel group has no step; add one with `.step::<name>()`, or leave the branch out",
            ));
        } else {
            self.ends.append(&mut self.parts.tips);
        }
        self.width += self.parts.width;
        self
    }
}

impl<S: Store, I> fmt::Debug for Group<S, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("steps", &self.parts.shapes).finish_non_exhaustive()
    }
}
