//! Steps of the engine's own that only wait for a time.

use std::time::{Duration, SystemTime};

use super::parts::Parts;
use super::{Idle, Mapping, SagaFn, StepBuilder, StepDefinition};
use crate::step::{NeededOutput, Payload};
use crate::store::Store;

impl<S: Store> Parts<S> {
    fn add_sleep(&mut self, name: &'static str, idle: Idle, input: Option<Mapping>, earlier: &[NeededOutput]) {
        let mapped = earlier.iter().map(|needed| needed.step).collect();
        self.add_idle(StepDefinition { input, mapped, ..StepDefinition::of_idle(name, idle) }, earlier);
    }
}

/// # Sleeping
///
/// A sleep is a built-in step with a name. Its work row falls due when the sleep ends, so a sleep survives restarts,
/// occupies no task, and ends on any runtime on the store. Its duration is fixed when the saga reaches the step. A sleep
/// has no compensation. A saga that starts compensating or is cancelled does not wait for the end of its sleep. A branch of
/// a group can have a sleep.
///
/// ```
/// use std::time::{Duration, SystemTime};
///
/// use saga_core::memory::MemoryStore;
/// use saga_core::{Outcome, Output, Runtime, Saga, StepError, saga_step};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Trial { customer: String, ends: SystemTime }
///
/// #[saga_step(no_compensation)]
/// async fn send_welcome(trial: Trial) -> Result<Duration, StepError> {
///     Ok(Duration::from_millis(10))
/// }
///
/// #[saga_step]
/// async fn send_invoice(trial: Trial) -> Result<(), StepError> {
///     Ok(())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let trial = Saga::named("trial")
///     .input::<Trial>()
///     .step::<send_welcome>()
///     .sleep_from("settle-in", |_: &Trial, Output(time): Output<send_welcome>| time)
///     .sleep_until("until-it-ends", |trial: &Trial| trial.ends)
///     .step::<send_invoice>()
///     .build()?;
///
/// let runtime = Runtime::builder(MemoryStore::new()).saga(&trial).start().await?;
/// let ada = Trial { customer: "Ada".to_owned(), ends: SystemTime::UNIX_EPOCH };
/// let outcome = runtime.start(&trial, "trial-1", ada).await?.outcome().await?;
/// assert!(matches!(outcome, Outcome::Completed { .. }));
/// # runtime.shutdown().await;
/// # Ok(())
/// # }
/// ```
impl<S: Store, I: Payload, P> StepBuilder<S, I, P> {
    /// Adds a step that sleeps for this long, counted from when the saga reaches it.
    #[must_use]
    pub fn sleep(mut self, name: &'static str, duration: Duration) -> Self {
        self.parts.add_sleep(name, Idle::For(duration), None, &[]);
        self
    }

    /// Adds a step that sleeps for a duration that a closure makes from the saga's input and the outputs of earlier steps:
    /// see [`SagaFn`].
    #[must_use]
    pub fn sleep_from<M>(mut self, name: &'static str, duration: impl SagaFn<I, Duration, M>) -> Self {
        let needed = duration.needed();
        self.parts.add_sleep(name, Idle::Mapped, Some(Mapping::to_value(duration)), &needed);
        self
    }

    /// Adds a step that sleeps until a point in time by the clock of the store, which a closure makes: see [`SagaFn`]. If it
    /// has passed, the saga continues at once.
    #[must_use]
    pub fn sleep_until<M>(mut self, name: &'static str, moment: impl SagaFn<I, SystemTime, M>) -> Self {
        let needed = moment.needed();
        self.parts.add_sleep(name, Idle::Until, Some(Mapping::to_moment(moment)), &needed);
        self
    }
}
