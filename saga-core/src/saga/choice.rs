use std::fmt;
use std::marker::PhantomData;

use super::group::Nested;
use super::parts::Parts;
use super::{Arm, Branch, Predicate, SagaProblem, StepBuilder, StepDefinition, StepOutputs};
use crate::key::check_step_name;
use crate::machine::{ArmOf, Effect, StepShape, UndoShape};
use crate::step::{NeededOutput, Payload, Step};
use crate::store::Store;

/// The arm that runs where no other holds.
pub(super) const LAST_ARM: &str = "otherwise";

/// A choice that gets its arms, of a saga with the input `I` ([`SagaBuilder::choose`](super::SagaBuilder::choose)).
pub struct Choice<S: Store, I> {
    parts: Parts<S>,
    name: &'static str,
    /// The choice itself, which is a step.
    step: usize,
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
        let step = parts.steps.len();
        let shape = StepShape::new(name, Effect::Own, UndoShape::NotNeeded);
        parts.push(StepDefinition::choice(name), shape);
        parts.depth += 1;
        let (within, width) = (parts.within, parts.width);
        Self { parts, name, step, arms: Vec::new(), ends: Vec::new(), within, width, input: PhantomData }
    }

    pub(super) fn end(mut self) -> Parts<S> {
        if self.arms.is_empty() {
            self.problem("it has no arm; add one with `.when(\"name\", |input| .., |branch| branch.step::<name>())`");
        }
        let mut tips = std::mem::take(&mut self.ends);
        if self.arms.iter().all(|arm| arm.holds.is_some()) || tips.is_empty() {
            // Where no arm runs, what stands behind comes after the choice itself.
            tips.insert(0, self.step);
        }
        tips.dedup();
        let Self { mut parts, step, arms, within, width, .. } = self;
        parts.shapes[step].arms = arms.iter().map(|arm| arm.name).collect();
        parts.steps[step].set_arms(arms);
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
            self.parts.check_needed(self.name, needed, self.step);
            self.parts.steps[self.step].mapped.push(needed.step);
        }
        self.parts.within = Some(ArmOf { choice: self.step, arm: self.arms.len() });
        self.parts.tips = vec![self.step];
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
    /// Adds an arm, which runs if that holds of the saga's input and of no arm before it. An arm without steps is one that
    /// does nothing.
    #[must_use]
    pub fn when(
        self,
        arm: &'static str,
        holds: impl Fn(&I) -> bool + Send + Sync + 'static,
        steps: impl FnOnce(Branch<S, I>) -> Branch<S, I>,
    ) -> Self {
        self.arm(arm, Some(Predicate::of_input(holds)), &[], steps)
    }

    /// Adds an arm, which runs if that holds of the saga's input and of the output of an earlier step, or of a tuple of
    /// them, and of no arm before it.
    #[must_use]
    pub fn when_after<E: StepOutputs>(
        self,
        arm: &'static str,
        holds: impl Fn(&I, E::Outputs) -> bool + Send + Sync + 'static,
        steps: impl FnOnce(Branch<S, I>) -> Branch<S, I>,
    ) -> Self {
        self.arm(arm, Some(Predicate::of_outputs::<I, E>(holds)), &E::needed(), steps)
    }

    /// Adds the arm that runs where no other does. Its name is `otherwise`.
    #[must_use]
    pub fn otherwise(self, steps: impl FnOnce(Branch<S, I>) -> Branch<S, I>) -> Self {
        self.arm(LAST_ARM, None, &[], steps)
    }
}

/// What a step can be added to.
#[diagnostic::on_unimplemented(
    message = "a step of a choice stands in one of its arms",
    label = "this is the choice, and no arm of it",
    note = "write `.when(\"name\", |input| .., |branch| branch.step::<name>())`: the first arm that holds runs, and no other"
)]
#[doc(hidden)]
pub trait TakesSteps {}

/// Here only so that the mistake has a message.
#[doc(hidden)]
impl<S: Store, I: Payload> Choice<S, I> {
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
    pub fn step_after<T: Step, E: StepOutputs>(self, _input: impl Fn(&I, E::Outputs) -> T::Input) -> Self
    where
        Self: TakesSteps,
    {
        self
    }
}

impl<S: Store, I> fmt::Debug for Choice<S, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Choice").field("name", &self.name).field("arms", &self.arms).finish_non_exhaustive()
    }
}
