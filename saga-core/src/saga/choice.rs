use std::fmt;
use std::marker::PhantomData;

use super::definition::arm::LAST_ARM;
use super::parts::Parts;
use super::{Arm, Branch, Nested, Predicate, SagaFn, SagaProblem, StepBuilder, StepDefinition};
use crate::key::check_step_name;
use crate::machine::{ArmOf, Effect, StepShape, UndoShape};
use crate::step::{NeededOutput, Payload};
use crate::store::Store;

/// The arm of a choice that has only one.
const ONLY_ARM: &str = "yes";

/// A choice to which arms are added, in a saga with the input `I` ([`SagaBuilder::choose`](super::SagaBuilder::choose)).
pub struct Choice<S: Store, I> {
    parts: Parts<S>,
    name: &'static str,
    /// The index of the choice itself, which is a step.
    index: usize,
    arms: Vec<Arm>,
    /// What the next step behind it comes after: the last steps of the arms.
    ends: Vec<usize>,
    /// The arm that the choice itself stands in.
    within: Option<ArmOf>,
    /// How many steps can be under way at once outside, and in the widest arm.
    width: usize,
    input: PhantomData<fn(I)>,
}

impl<S: Store, I> Choice<S, I> {
    pub(super) fn begin(mut parts: Parts<S>, name: &'static str) -> Self {
        parts.problems.extend(check_step_name(name).err().map(|error| {
            let problem = error.to_string().replacen("the step name", "its name", 1);
            SagaProblem::Choice { choice: name, problem }
        }));
        let index = parts.steps.len();
        let shape = StepShape::new(name, Effect::Own, UndoShape::NotNeeded);
        parts.push(StepDefinition::choice(name), shape);
        parts.depth += 1;
        let (within, width) = (parts.within, parts.width);
        Self { parts, name, index, arms: Vec::new(), ends: Vec::new(), within, width, input: PhantomData }
    }

    pub(super) fn end(mut self) -> Parts<S> {
        if self.arms.is_empty() {
            self.problem("it has no arm; add one with `.when(\"name\", |input| .., |branch| branch.step::<name>())`");
        }
        let mut tips = std::mem::take(&mut self.ends);
        if self.arms.iter().all(|arm| arm.holds.is_some()) || tips.is_empty() {
            // Where no arm runs, what stands behind comes after the choice itself.
            tips.insert(0, self.index);
        }
        tips.dedup();
        let Self { mut parts, index, arms, within, width, .. } = self;
        parts.shapes[index].arms = arms.iter().map(|arm| arm.name).collect();
        parts.steps[index].set_arms(arms);
        (parts.tips, parts.within, parts.width) = (tips, within, width);
        parts.depth -= 1;
        parts
    }

    fn arm(
        mut self,
        name: &'static str,
        holds: Option<Predicate>,
        needed: &[NeededOutput],
        steps: impl FnOnce(Branch<S, I>) -> Branch<S, I>,
    ) -> Self {
        self.check_arm(name, holds.is_some());
        for &needed in needed {
            self.parts.check_needed(self.name, needed, self.index);
            self.parts.steps[self.index].mapped.push(needed.step);
        }
        self.parts.within = Some(ArmOf { choice: self.index, arm: self.arms.len() });
        self.parts.tips = vec![self.index];
        self.parts.width = 1;
        self.parts = steps(StepBuilder::new(self.parts, Nested)).parts;
        self.width = self.width.max(self.parts.width);
        self.ends.append(&mut self.parts.tips);
        self.arms.push(Arm { name, holds });
        self
    }

    fn check_arm(&mut self, name: &'static str, is_conditional: bool) {
        if let Err(error) = check_step_name(name) {
            self.problem(&error.to_string().replacen("the step name", "the name of its arm", 1));
        }
        if name == LAST_ARM && is_conditional {
            self.problem("`otherwise` is the name of the arm without a condition; give this one another name");
        }
        if self.arms.iter().any(|arm| arm.name == name) {
            self.problem(&format!("two of its arms are named `{name}`; give one of them another name"));
        }
        if let Some(last) = self.arms.iter().find(|arm| arm.holds.is_none()) {
            let problem = format!("its arm `{name}` stands behind `{}`, so it never runs; put it in front", last.name);
            self.problem(&problem);
        }
    }

    fn problem(&mut self, problem: &str) {
        self.parts.problems.push(SagaProblem::Choice { choice: self.name, problem: problem.to_owned() });
    }
}

impl<S: Store, I: Payload> Choice<S, I> {
    /// Adds an arm, which runs if its condition holds and no earlier arm's condition does. An arm without steps does nothing.
    /// The condition is a closure on the saga's input and the outputs of earlier steps: see [`SagaFn`].
    #[must_use]
    pub fn when<M>(
        self,
        arm: &'static str,
        holds: impl SagaFn<I, bool, M>,
        steps: impl FnOnce(Branch<S, I>) -> Branch<S, I>,
    ) -> Self {
        let needed = holds.needed();
        self.arm(arm, Some(Predicate::of(holds)), &needed, steps)
    }

    /// Adds the arm that runs if no other arm does. Its name is `otherwise`.
    #[must_use]
    pub fn otherwise(self, steps: impl FnOnce(Branch<S, I>) -> Branch<S, I>) -> Self {
        self.arm(LAST_ARM, None, &[], steps)
    }
}

impl<S: Store, I: Payload, P> StepBuilder<S, I, P> {
    /// Adds a choice: the first arm whose condition holds runs, and no other. If no condition holds and there is no
    /// [`otherwise`](Choice::otherwise), the saga continues after the choice.
    ///
    /// The choice has a name of 1 to 40 bytes of `[a-z0-9-]`, different from all steps. The chosen arm is recorded under this
    /// name once, and the conditions are never evaluated again. A condition that panics makes the saga stuck; an operator can
    /// retry it, or choose the arm (`skip_with(&"express")`).
    ///
    /// Inside the arm, other steps read the output of a step as `Output<step>`. After the choice the step may not have run,
    /// so there they read it as `Option<Output<step>>`.
    ///
    /// ```
    /// # use saga_core::{Output, Saga, StepError, memory::MemoryStore, saga_step};
    /// #[derive(serde::Serialize, serde::Deserialize)]
    /// struct Order {
    ///     pieces: u32,
    ///     is_express: bool,
    /// }
    ///
    /// #[saga_step(no_compensation)]
    /// async fn reserve_stock(order: Order) -> Result<u32, StepError> {
    ///     Ok(order.pieces.min(10))
    /// }
    /// # #[saga_step(no_compensation)]
    /// # async fn call_courier(_order: Order) -> Result<String, StepError> { Ok("tonight".to_owned()) }
    /// # #[saga_step(no_compensation)]
    /// # async fn split_parcels(_order: Order) -> Result<u32, StepError> { Ok(2) }
    /// # #[saga_step(no_compensation)]
    /// # async fn pack_parcel(_order: Order) -> Result<(), StepError> { Ok(()) }
    ///
    /// #[saga_step(no_compensation)]
    /// async fn write_invoice(_order: Order, courier: Option<Output<call_courier>>) -> Result<String, StepError> {
    ///     Ok(courier.map_or("delivery: free".to_owned(), |Output(when)| format!("courier: {when}")))
    /// }
    ///
    /// let saga: Saga<MemoryStore, Order> = Saga::named("ship-order")
    ///     .input::<Order>()
    ///     .step::<reserve_stock>()
    ///     .choose("shipping", |choice| {
    ///         choice
    ///             .when("express", |order: &Order| order.is_express, |branch| branch.step::<call_courier>())
    ///             .when(
    ///                 "in-parts",
    ///                 |order: &Order, Output(reserved): Output<reserve_stock>| reserved < order.pieces,
    ///                 |branch| branch.step::<split_parcels>(),
    ///             )
    ///             .otherwise(|branch| branch.step::<pack_parcel>())
    ///     })
    ///     .step::<write_invoice>()
    ///     .build()?;
    /// # Ok::<(), saga_core::saga::SagaError>(())
    /// ```
    #[must_use]
    pub fn choose(mut self, name: &'static str, arms: impl FnOnce(Choice<S, I>) -> Choice<S, I>) -> Self {
        self.parts = arms(Choice::begin(self.parts, name)).end();
        self
    }

    /// Adds steps that run only if a condition holds: a [choice](Self::choose) with one arm, `yes`. The condition is a
    /// closure: see [`SagaFn`].
    ///
    /// ```
    /// # use saga_core::{Saga, StepError, memory::MemoryStore, saga_step};
    /// # #[saga_step(no_compensation)]
    /// # async fn check_limit(_total: u64) -> Result<(), StepError> { Ok(()) }
    /// # #[saga_step(no_compensation)]
    /// # async fn charge_card(_total: u64) -> Result<(), StepError> { Ok(()) }
    /// let saga: Saga<MemoryStore, u64> = Saga::named("pay")
    ///     .input::<u64>()
    ///     .when("is-large", |total: &u64| *total > 100_000, |branch| branch.step::<check_limit>())
    ///     .step::<charge_card>()
    ///     .build()?;
    /// # Ok::<(), saga_core::saga::SagaError>(())
    /// ```
    #[must_use]
    pub fn when<M>(
        self,
        name: &'static str,
        holds: impl SagaFn<I, bool, M>,
        steps: impl FnOnce(Branch<S, I>) -> Branch<S, I>,
    ) -> Self {
        self.choose(name, |choice| choice.when(ONLY_ARM, holds, steps))
    }
}

impl<S: Store, I> fmt::Debug for Choice<S, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Choice").field("name", &self.name).field("arms", &self.arms).finish_non_exhaustive()
    }
}
