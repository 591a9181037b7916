use std::fmt;
use std::marker::PhantomData;

use super::parts::Parts;
use super::{Earlier, Mapping, SagaProblem};
use crate::step::{Each, Handler, InputOf, Payload, Step};
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

/// A branch of a parallel group that gets its steps: they run one after the other, beside those of the other branches.
pub struct Branch<S: Store, I> {
    pub(super) parts: Parts<S>,
    input: PhantomData<fn(I)>,
}

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
        self.parts = steps(Branch { parts: self.parts, input: PhantomData }).parts;
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

/// What a step can be added to.
#[diagnostic::on_unimplemented(
    message = "a step of a parallel group stands in one of its branches",
    label = "this is the group, and no branch of it",
    note = "write `.branch(|branch| branch.step::<name>())`: the steps of a branch run one after the other, and branches beside each other"
)]
#[doc(hidden)]
pub trait TakesSteps {}

/// Here only so that the mistake has a message.
#[doc(hidden)]
impl<S: Store, I: Payload> Group<S, I> {
    #[must_use]
    pub fn step<T: Step>(self) -> Self
    where
        Self: TakesSteps,
    {
        self
    }

    #[must_use]
    pub fn step_with<T: Step>(self, _input: impl Fn(&I) -> T::Input) -> Self
    where
        Self: TakesSteps,
    {
        self
    }

    #[must_use]
    pub fn step_after<T: Step, E: Earlier>(self, _input: impl Fn(&I, E::Outputs) -> T::Input) -> Self
    where
        Self: TakesSteps,
    {
        self
    }
}

impl<S: Store, I: Payload> Branch<S, I> {
    /// Adds a step whose input is the saga's.
    #[must_use]
    pub fn step<T: Handler<S, Input: InputOf<I>>>(mut self) -> Self {
        self.parts.add::<T>(None, &[]);
        self
    }

    /// Adds a step whose input is made of the saga's. What the closure gives is stored with the command and never
    /// computed again.
    #[must_use]
    pub fn step_with<T: Handler<S>>(mut self, input: impl Fn(&I) -> T::Input + Send + Sync + 'static) -> Self {
        self.parts.add::<T>(Some(Mapping::of_input::<I, T>(input)), &[]);
        self
    }

    /// Adds a step whose input is made of the saga's and of the output of an earlier step, or of a tuple of them: of
    /// this branch, or in front of the group.
    #[must_use]
    pub fn step_after<T: Handler<S>, E: Earlier>(
        mut self,
        input: impl Fn(&I, E::Outputs) -> T::Input + Send + Sync + 'static,
    ) -> Self {
        self.parts.add::<T>(Some(Mapping::of_outputs::<I, T, E>(input)), &E::needed());
        self
    }

    /// Adds a step that is done for each item of a list, which is made of the saga's input. See
    /// [`for_each_after`](Self::for_each_after).
    #[must_use]
    pub fn for_each_with<T: Handler<S>>(
        mut self,
        at_once: usize,
        list: impl Fn(&I) -> Vec<T::Input> + Send + Sync + 'static,
    ) -> Self {
        self.parts.add_each::<T>(at_once, Mapping::of_input::<I, Each<T>>(list), &[]);
        self
    }

    /// Adds a step that is done for each item of a list, as
    /// [`SagaBuilder::for_each_after`](super::SagaBuilder::for_each_after) does.
    #[must_use]
    pub fn for_each_after<T: Handler<S>, E: Earlier>(
        mut self,
        at_once: usize,
        list: impl Fn(&I, E::Outputs) -> Vec<T::Input> + Send + Sync + 'static,
    ) -> Self {
        self.parts.add_each::<T>(at_once, Mapping::of_outputs::<I, Each<T>, E>(list), &E::needed());
        self
    }

    /// Adds a group inside the branch.
    #[must_use]
    pub fn parallel(mut self, branches: impl FnOnce(Group<S, I>) -> Group<S, I>) -> Self {
        self.parts = branches(Group::begin(self.parts)).end();
        self
    }

    /// No step of a group can be the pivot: `build()` refuses it and says what to write instead.
    #[must_use]
    pub fn pivot(mut self) -> Self {
        self.parts.mark_pivot();
        self
    }
}

impl<S: Store, I> fmt::Debug for Group<S, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("steps", &self.parts.shapes).finish_non_exhaustive()
    }
}

impl<S: Store, I> fmt::Debug for Branch<S, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Branch").field("steps", &self.parts.shapes).finish_non_exhaustive()
    }
}
