use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use super::definition::definition::Check;
use super::parts::Parts;
use super::{Definition, ResultOf, Retention, Saga, SagaError, SagaProblem, StepBuilder};
use crate::key::check_step_name;
use crate::machine::Shape;
use crate::step::{Payload, codec};
use crate::store::Store;

/// The most steps that a saga may have.
const STEPS_MAX: usize = 1_000;

/// A definition that has a name and needs its input type.
#[derive(Debug)]
pub struct SagaInit<S> {
    name: String,
    store: PhantomData<fn(S)>,
}

/// A definition to which steps are added.
pub type SagaBuilder<S, I> = StepBuilder<S, I, Root>;

/// What is said of a saga as a whole, while it gets its steps.
#[derive(Debug)]
pub struct Root {
    name: String,
    version: u32,
    deadline: Option<Duration>,
    max_concurrent: Option<usize>,
    retention: Option<Retention>,
}

impl<S: Store> Saga<S, ()> {
    /// Begins a definition. The name is 1 to 40 bytes of `[a-z0-9-]`.
    pub fn named(name: impl Into<String>) -> SagaInit<S> {
        SagaInit { name: name.into(), store: PhantomData }
    }
}

impl<S: Store> SagaInit<S> {
    /// Sets the input type of the saga. Because it is set here, the compiler reports a step with another input at the step.
    pub fn input<I: Payload>(self) -> SagaBuilder<S, I> {
        let problem = check_step_name(&self.name).err().map(|error| SagaProblem::Name(saga_name_problem(&error)));
        StepBuilder::new(
            Parts::new(problem),
            Root { name: self.name, version: 1, deadline: None, max_concurrent: None, retention: None },
        )
    }
}

impl<S: Store, I: Payload> StepBuilder<S, I, Root> {
    /// Sets the version; the default is 1. A saga stays on the version with which it was started.
    #[must_use]
    pub fn version(mut self, version: u32) -> Self {
        if version == 0 {
            self.parts.problems.push(SagaProblem::Version);
        }
        self.place.version = version;
        self
    }

    /// Sets the deadline of each saga, counted from its start. A saga that has not begun its pivot by then compensates, as
    /// if it were cancelled. A saga without a pivot must have completed by then. After the pivot a saga only goes forward, so
    /// the deadline no longer applies. A start can give its saga [another limit](crate::engine::StartSaga::within).
    ///
    /// The deadline is a row in the store, so it survives restarts. The commit in which the saga passes its pivot, starts
    /// compensating or ends removes the row. The deadline can change without a new version of the definition; sagas that
    /// were started before keep theirs.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use saga_core::engine::CompensationCause;
    /// use saga_core::memory::MemoryStore;
    /// use saga_core::{Outcome, Runtime, Saga, StepError, saga_step};
    ///
    /// #[saga_step(no_compensation, retry(base = "1h", cap = "1h"))]
    /// async fn ask_carrier(_order: u32) -> Result<(), StepError> {
    ///     Err(StepError::not_sent("the carrier does not answer"))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let ship = Saga::named("ship").input::<u32>().deadline(Duration::from_millis(20)).step::<ask_carrier>().build()?;
    /// let runtime = Runtime::builder(MemoryStore::new()).saga(&ship).start().await?;
    ///
    /// let outcome = runtime.start(&ship, "order-1", 7).await?.outcome().await?;
    /// assert!(matches!(outcome, Outcome::Compensated { cause: CompensationCause::DeadlinePassed, .. }));
    /// assert_eq!(outcome.to_string(), "compensated, because its deadline passed: it was to be done within 20ms");
    /// # runtime.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn deadline(mut self, within: Duration) -> Self {
        self.place.deadline = Some(within);
        self
    }

    /// Limits how many steps of this definition one process runs at once, so that they leave room for other definitions: a
    /// bulkhead. An external call counts as one; so does a transaction, which carries steps of many sagas. All versions of a
    /// definition are counted together; if they have different limits, the lowest applies.
    ///
    /// Work above the limit stays in the store, where another process can claim it. A limit for one step is set on the
    /// step: `#[saga_step(max_concurrent = 8)]`. It can be changed without a new version of the definition.
    ///
    /// ```
    /// use saga_core::memory::MemoryStore;
    /// use saga_core::{Saga, StepError, saga_step};
    ///
    /// #[saga_step(no_compensation)]
    /// async fn render_report(_month: u32) -> Result<(), StepError> {
    ///     Ok(())
    /// }
    ///
    /// let reports: Saga<MemoryStore, u32> =
    ///     Saga::named("reports").input().max_concurrent(4).step::<render_report>().build()?;
    /// # assert_eq!(reports.name(), "reports");
    /// # Ok::<(), saga_core::saga::SagaError>(())
    /// ```
    #[must_use]
    pub fn max_concurrent(mut self, steps: usize) -> Self {
        if steps == 0 {
            self.parts.problems.push(SagaProblem::MaxConcurrent);
        }
        self.place.max_concurrent = Some(steps);
        self
    }

    /// Sets how long sagas are kept after their end; without it they are kept for ever, or as
    /// [`Settings::default_retention`](crate::Settings::default_retention) says.
    ///
    /// It applies to sagas that end from now on, and can change without a new version of the definition. The retention of
    /// sagas that ended before is changed by `retention apply` of the command line. A saga goes together with its
    /// sub-sagas; what their definitions say does not matter.
    #[must_use]
    pub fn retention(mut self, retention: Retention) -> Self {
        if let Some((key, full)) = retention.short_key() {
            self.parts.problems.push(SagaProblem::Retention { key, full });
        }
        self.place.retention = Some(retention);
        self
    }

    /// Checks the definition.
    ///
    /// # Errors
    /// All problems of the definition, each with its remedy.
    pub fn build(self) -> Result<Saga<S, I>, SagaError> {
        Ok(Saga::of(self.define(None)?))
    }

    pub(super) fn define(mut self, result: Option<ResultOf>) -> Result<Arc<Definition<S>>, SagaError> {
        self.check_counts();
        self.parts.check_order();
        self.parts.check_compensations();
        self.parts.check_locks();
        let Parts { steps, shapes, pivot, problems, width, .. } = self.parts;
        let Root { name, version, deadline, max_concurrent, retention } = self.place;
        if !problems.is_empty() {
            return Err(SagaError::new(&name, problems));
        }
        let shape = Shape { steps: shapes, pivot };
        let definition = Definition::new(&name, version, shape, steps, width);
        let check_input: Check = |bytes| codec::<I>().decode(bytes).map(drop).map_err(|error| error.to_string());
        Ok(Arc::new(Definition { deadline, max_concurrent, retention, result, check_input, ..definition }))
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

fn saga_name_problem(error: &crate::key::InvalidName) -> String {
    error.to_string().replacen("the step name", "its name", 1)
}
