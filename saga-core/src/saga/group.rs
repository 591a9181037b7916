use std::fmt;
use std::marker::PhantomData;

use super::parts::Parts;
use super::{Branch, Nested, SagaProblem, StepBuilder};
use crate::step::Payload;
use crate::store::Store;

/// A group to which branches are added, in a saga with the input `I` ([`SagaBuilder::parallel`](super::SagaBuilder::parallel)).
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

impl<S: Store, I: Payload, P> StepBuilder<S, I, P> {
    /// Adds branches that run concurrently. The step after the group begins when all branches are done.
    ///
    /// If a step of a branch fails, no other step of the saga begins. When no step is in flight any more, the branches are
    /// undone concurrently, each in the reverse order of completion. Each [`Branch`](super::Branch) is a sequence of one or
    /// more steps, and can contain groups.
    ///
    /// ```
    /// # use saga_core::{Output, Saga, StepError, memory::MemoryStore, saga_step};
    /// # #[saga_step(no_compensation)]
    /// # async fn charge_card(order: u32) -> Result<u32, StepError> { Ok(order) }
    /// # #[saga_step(no_compensation)]
    /// # async fn book_shipment(order: u32) -> Result<String, StepError> { Ok(format!("parcel {order}")) }
    /// # #[saga_step(no_compensation)]
    /// # async fn print_label(parcel: String) -> Result<(), StepError> { Ok(()) }
    /// # #[saga_step(no_compensation)]
    /// # async fn confirm_order(order: u32) -> Result<(), StepError> { Ok(()) }
    /// let saga: Saga<MemoryStore, u32> = Saga::named("create-order")
    ///     .input::<u32>()
    ///     .parallel(|group| {
    ///         group
    ///             .branch(|branch| branch.step::<charge_card>())
    ///             .branch(|branch| {
    ///                 branch
    ///                     .step::<book_shipment>()
    ///                     .step_from::<print_label, _>(|_: &u32, Output(parcel): Output<book_shipment>| parcel)
    ///             })
    ///     })
    ///     .step::<confirm_order>()
    ///     .build()?;
    /// # Ok::<(), saga_core::saga::SagaError>(())
    /// ```
    #[must_use]
    pub fn parallel(mut self, branches: impl FnOnce(Group<S, I>) -> Group<S, I>) -> Self {
        self.parts = branches(Group::begin(self.parts)).end();
        self
    }
}

impl<S: Store, I> fmt::Debug for Group<S, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("steps", &self.parts.shapes).finish_non_exhaustive()
    }
}
