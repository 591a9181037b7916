use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use super::{Definition, Earlier, Mapping, SagaError, SagaProblem, StepDefinition};
use crate::key::check_step_name;
use crate::machine::{Shape, StepShape, UndoShape};
use crate::step::{Handler, Payload, Step};
use crate::store::Store;

/// The most steps that a saga may have.
const STEPS_MAX: usize = 1_000;

/// A saga definition: the steps in order, from an input `I`, on a store `S`. Cheap to clone.
///
/// ```
/// # use saga_core::{Saga, StepError, memory::MemoryStore, saga_step};
/// #[saga_step(no_compensation)]
/// async fn greet(name: String) -> Result<String, StepError> {
///     Ok(format!("hello {name}"))
/// }
///
/// let saga: Saga<MemoryStore, String> = Saga::named("greeting").input::<String>().step::<greet>().build()?;
/// # Ok::<(), saga_core::saga::SagaError>(())
/// ```
pub struct Saga<S: Store, I> {
    pub(super) definition: Arc<Definition<S>>,
    pub(super) input: PhantomData<fn(I)>,
}

/// A saga that has a name and needs its input.
#[derive(Debug)]
pub struct SagaName<S> {
    name: String,
    store: PhantomData<fn(S)>,
}

/// A saga that gets its steps.
pub struct SagaBuilder<S: Store, I> {
    name: String,
    version: u32,
    steps: Vec<StepDefinition<S>>,
    shapes: Vec<StepShape>,
    pivot: Option<usize>,
    problems: Vec<SagaProblem>,
    input: PhantomData<fn(I)>,
}

impl<S: Store> Saga<S, ()> {
    /// Begins a definition. The name is 1 to 40 bytes of `[a-z0-9-]`.
    pub fn named(name: impl Into<String>) -> SagaName<S> {
        SagaName { name: name.into(), store: PhantomData }
    }
}

impl<S: Store> SagaName<S> {
    /// Says what the saga is started with. It is named once, so that a step that does not fit is reported at its own
    /// name.
    pub fn input<I: Payload>(self) -> SagaBuilder<S, I> {
        let problem = check_step_name(&self.name).err().map(|error| SagaProblem::Name(saga_name_problem(&error)));
        SagaBuilder {
            name: self.name,
            version: 1,
            steps: Vec::new(),
            shapes: Vec::new(),
            pivot: None,
            problems: problem.into_iter().collect(),
            input: PhantomData,
        }
    }
}

impl<S: Store, I: Payload> SagaBuilder<S, I> {
    /// Sets the version; 1 where it is not set. A saga stays on the version that it was started with.
    #[must_use]
    pub fn version(mut self, version: u32) -> Self {
        if version == 0 {
            self.problems.push(SagaProblem::Version);
        }
        self.version = version;
        self
    }

    /// Adds a step whose input is the saga's.
    #[must_use]
    pub fn step<T: Handler<S, Input = I>>(self) -> Self {
        self.add::<T>(None, &[])
    }

    /// Adds a step whose input is made of the saga's. What the closure gives is stored with the command and never
    /// computed again.
    #[must_use]
    pub fn step_with<T: Handler<S>>(self, input: impl Fn(&I) -> T::Input + Send + Sync + 'static) -> Self {
        self.add::<T>(Some(Mapping::of_input::<I, T>(input)), &[])
    }

    /// Adds a step whose input is made of the saga's and of the output of an earlier step, or of a tuple of them.
    #[must_use]
    pub fn step_after<T: Handler<S>, E: Earlier>(
        self,
        input: impl Fn(&I, E::Outputs) -> T::Input + Send + Sync + 'static,
    ) -> Self {
        self.add::<T>(Some(Mapping::of_outputs::<I, T, E>(input)), &E::names())
    }

    /// Makes the step that was added last the pivot: once it is done the saga only goes forward.
    #[must_use]
    pub fn pivot(mut self) -> Self {
        match (self.steps.len().checked_sub(1), self.pivot) {
            (None, _) => {
                self.problems.push(SagaProblem::Pivot("`.pivot()` stands before the first step; put it behind one"));
            }
            (Some(_), Some(_)) => {
                self.problems.push(SagaProblem::Pivot("`.pivot()` stands behind two steps; a saga has one pivot"));
            }
            (last, None) => self.pivot = last,
        }
        self
    }

    /// Checks the definition.
    ///
    /// # Errors
    /// Every problem of it, each with its remedy.
    pub fn build(mut self) -> Result<Saga<S, I>, SagaError> {
        self.check_counts();
        self.check_order();
        self.check_compensations();
        if !self.problems.is_empty() {
            return Err(SagaError::new(&self.name, self.problems));
        }
        let shape = Shape { steps: self.shapes, pivot: self.pivot };
        let definition = Arc::new(Definition::new(&self.name, self.version, shape, self.steps));
        Ok(Saga { definition, input: PhantomData })
    }

    fn add<T: Handler<S>>(mut self, input: Option<Mapping>, earlier: &[&'static str]) -> Self {
        for &needed in earlier {
            self.check_needed::<T>(needed);
        }
        let step = StepDefinition::of::<T>(input, earlier.to_vec());
        self.shapes.push(step.shape::<T>());
        self.steps.push(step);
        self
    }

    fn check_needed<T: Step>(&mut self, needed: &'static str) {
        if !self.steps.iter().any(|step| step.name == needed) {
            self.problems.push(SagaProblem::LateOutput { step: T::NAME, needed });
        }
    }

    fn check_counts(&mut self) {
        match self.steps.len() {
            0 => self.problems.push(SagaProblem::NoSteps),
            count if count > STEPS_MAX => {
                self.problems.push(SagaProblem::TooManySteps { count, max: STEPS_MAX });
            }
            _ => {}
        }
    }

    fn check_order(&mut self) {
        for (index, step) in self.steps.iter().enumerate() {
            let before = &self.steps[..index];
            if before.iter().any(|other| other.name == step.name) {
                self.problems.push(SagaProblem::DuplicateStep { step: step.name });
            }
            for needed in &step.needs.outputs {
                if !before.iter().any(|other| other.name == needed.step) {
                    self.problems.push(SagaProblem::LateOutput { step: step.name, needed: needed.step });
                }
            }
        }
    }

    /// A last step without a compensation is the pivot where none is declared: behind it nothing can fail any more.
    fn check_compensations(&mut self) {
        let last = self.steps.len().saturating_sub(1);
        if self.pivot.is_none() && self.shapes.last().is_some_and(|step| step.undo == UndoShape::Missing) {
            self.pivot = Some(last);
        }
        let before_pivot = self.pivot.unwrap_or(self.shapes.len());
        for step in self.shapes[..before_pivot].iter().filter(|step| step.undo == UndoShape::Missing) {
            self.problems.push(SagaProblem::NoCompensation { step: step.name });
        }
    }
}

impl<S: Store, I> Saga<S, I> {
    /// The saga's name.
    pub fn name(&self) -> &str {
        &self.definition.id.name
    }

    /// The saga's version.
    pub fn version(&self) -> u32 {
        self.definition.id.version
    }

    /// The definition as a Mermaid flow chart.
    pub fn to_mermaid(&self) -> String {
        super::graph::mermaid(&self.definition.id, &self.definition.shape)
    }

    pub(crate) fn definition(&self) -> &Arc<Definition<S>> {
        &self.definition
    }
}

fn saga_name_problem(error: &crate::key::InvalidName) -> String {
    error.to_string().replacen("the step name", "its name", 1)
}

impl<S: Store, I> Clone for Saga<S, I> {
    fn clone(&self) -> Self {
        Self { definition: Arc::clone(&self.definition), input: PhantomData }
    }
}

impl<S: Store, I> fmt::Debug for Saga<S, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Saga").field(&self.definition).finish()
    }
}

impl<S: Store, I> fmt::Debug for SagaBuilder<S, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SagaBuilder").field("name", &self.name).field("steps", &self.shapes).finish_non_exhaustive()
    }
}
