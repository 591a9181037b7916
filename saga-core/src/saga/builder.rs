use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use super::parts::Parts;
use super::{Definition, Earlier, Group, Mapping, SagaError, SagaProblem};
use crate::key::check_step_name;
use crate::machine::Shape;
use crate::step::{Each, Handler, InputOf, Payload};
use crate::store::Store;

/// The most steps that a saga may have.
const STEPS_MAX: usize = 1_000;

/// A saga definition: the steps in order, some of them side by side, from an input `I`, on a store `S`. Cheap to clone.
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
    deadline: Option<Duration>,
    pub(super) parts: Parts<S>,
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
        SagaBuilder { name: self.name, version: 1, deadline: None, parts: Parts::new(problem), input: PhantomData }
    }
}

impl<S: Store, I: Payload> SagaBuilder<S, I> {
    /// Sets the version; 1 where it is not set. A saga stays on the version that it was started with.
    #[must_use]
    pub fn version(mut self, version: u32) -> Self {
        if version == 0 {
            self.parts.problems.push(SagaProblem::Version);
        }
        self.version = version;
        self
    }

    /// Gives each saga so much time from its start: one that has not come to its pivot by then turns round, as if it were
    /// cancelled. Where there is no pivot, it has to be done by then. From the pivot on a deadline says nothing, since the
    /// saga only goes forward. [`Runtime::start_within`](crate::Runtime::start_within) gives one saga another time.
    ///
    /// The deadline is a row in the store. It outlives restarts, and goes with the commit by which the saga comes to its
    /// pivot, turns round or ends. It can be changed without a new version of the definition: sagas that were started
    /// before keep theirs.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use saga_core::memory::MemoryStore;
    /// use saga_core::{Outcome, Runtime, Saga, StepError, saga_step};
    ///
    /// #[saga_step(no_compensation, retry(attempts = 1_000, base = "1h", cap = "1h"))]
    /// async fn ask_carrier(_order: u32) -> Result<(), StepError> {
    ///     Err(StepError::not_sent("nobody answers"))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let ship = Saga::named("ship").input::<u32>().deadline(Duration::from_millis(20)).step::<ask_carrier>().build()?;
    /// let runtime = Runtime::builder(MemoryStore::new()).saga(&ship).start().await?;
    ///
    /// let outcome = runtime.start(&ship, "order-1", 7).await?.outcome().await?;
    /// assert!(matches!(outcome, Outcome::Compensated { overdue: true, .. }));
    /// assert_eq!(outcome.to_string(), "compensated, because its deadline passed: it was to be done within 20ms");
    /// # runtime.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn deadline(mut self, within: Duration) -> Self {
        self.deadline = Some(within);
        self
    }

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

    /// Adds a step whose input is made of the saga's and of the output of an earlier step, or of a tuple of them.
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

    /// Adds a step that is done for each item of a list, which is made of the saga's input and of the output of an
    /// earlier step, or of a tuple of them. The list is stored when it is made, and never made again. Not more than
    /// `at_once` items are under way at once.
    ///
    /// Each item is a step of its own: with its own attempts, its own record, and a key of its own, `key:step#n`, where
    /// the first item has the number 1. What stands behind begins when every item is done, and takes what they gave, in
    /// the order of the list, as the output of [`Each<T>`](Each). An empty list gives an empty list.
    ///
    /// When an item fails, no other begins. Those that took effect are undone in the reverse order of their completion,
    /// not more than `at_once` at once.
    ///
    /// ```
    /// # use saga_core::{Each, Output, Saga, StepError, memory::MemoryStore, saga_step};
    /// #[saga_step(no_compensation)]
    /// async fn plan_parcels(order: u32) -> Result<Vec<String>, StepError> {
    ///     Ok((1..=order).map(|number| format!("parcel {number}")).collect())
    /// }
    ///
    /// #[saga_step(no_compensation)]
    /// async fn pack_parcel(parcel: String) -> Result<u32, StepError> {
    ///     Ok(u32::try_from(parcel.len()).unwrap_or(u32::MAX))
    /// }
    ///
    /// #[saga_step(no_compensation)]
    /// async fn book_truck(_order: u32, Output(grams): Output<Each<pack_parcel>>) -> Result<u32, StepError> {
    ///     Ok(grams.iter().sum())
    /// }
    ///
    /// let saga: Saga<MemoryStore, u32> = Saga::named("ship-order")
    ///     .input::<u32>()
    ///     .step::<plan_parcels>()
    ///     .for_each_after::<pack_parcel, plan_parcels>(8, |_, parcels| parcels)
    ///     .step::<book_truck>()
    ///     .build()?;
    /// # Ok::<(), saga_core::saga::SagaError>(())
    /// ```
    #[must_use]
    pub fn for_each_after<T: Handler<S>, E: Earlier>(
        mut self,
        at_once: usize,
        list: impl Fn(&I, E::Outputs) -> Vec<T::Input> + Send + Sync + 'static,
    ) -> Self {
        self.parts.add_each::<T>(at_once, Mapping::of_outputs::<I, Each<T>, E>(list), &E::needed());
        self
    }

    /// Adds branches that run side by side. What stands behind the group begins when every branch of it is done.
    ///
    /// When a step of a branch fails, no other of the saga begins. What took effect is undone once nothing of it is in
    /// flight: in the reverse order of completion along each branch, and the branches side by side. Each
    /// [`Branch`](super::Branch) is a chain of one or more steps, and may hold groups itself.
    ///
    /// ```
    /// # use saga_core::{Saga, StepError, memory::MemoryStore, saga_step};
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
    ///                 branch.step::<book_shipment>().step_after::<print_label, book_shipment>(|_, parcel| parcel)
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

    /// Makes the step that was added last the pivot: once it is done the saga only goes forward.
    #[must_use]
    pub fn pivot(mut self) -> Self {
        self.parts.mark_pivot();
        self
    }

    /// Checks the definition.
    ///
    /// # Errors
    /// Every problem of it, each with its remedy.
    pub fn build(mut self) -> Result<Saga<S, I>, SagaError> {
        self.check_counts();
        self.parts.check_order();
        self.parts.check_compensations();
        let Parts { steps, shapes, pivot, problems, width, .. } = self.parts;
        if !problems.is_empty() {
            return Err(SagaError::new(&self.name, problems));
        }
        let shape = Shape { steps: shapes, pivot };
        let definition = Definition::new(&self.name, self.version, shape, steps, width);
        let definition = Arc::new(Definition { deadline: self.deadline, ..definition });
        Ok(Saga { definition, input: PhantomData })
    }

    fn check_counts(&mut self) {
        match self.parts.steps.len() {
            0 => self.parts.problems.push(SagaProblem::NoSteps),
            count if count > STEPS_MAX => {
                self.parts.problems.push(SagaProblem::TooManySteps { count, max: STEPS_MAX });
            }
            _ => {}
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
        f.debug_struct("SagaBuilder")
            .field("name", &self.name)
            .field("steps", &self.parts.shapes)
            .finish_non_exhaustive()
    }
}
