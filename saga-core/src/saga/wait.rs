//! Steps of the engine's own that wait for a message from outside.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::parts::Parts;
use super::{Idle, Mapping, StepBuilder, StepDefinition};
use crate::step::{Payload, Signal, Signaled, Step};
use crate::store::Store;

/// The longest that anything waits: a hundred years. So does a step that has no limit.
pub(crate) const LONGEST: Duration = Duration::from_hours(100 * 365 * 24);

/// What a step waits for, and for how long.
#[derive(Clone)]
pub(crate) struct Wait {
    /// Nothing where its mapping says it.
    pub(crate) within: Option<Duration>,
    pub(crate) or: Or,
}

/// What stands for a message that did not arrive in time.
#[derive(Clone)]
pub(crate) enum Or {
    /// This one, made of the saga's input.
    Default(Mapping),
    /// The step is rejected.
    Reject,
}

impl Wait {
    /// The same wait, whose time is over; with a signal, that stands for what did not arrive.
    pub(super) fn over(&self, signal: Option<Vec<u8>>) -> Self {
        let or = signal.map_or_else(|| self.or.clone(), |signal| Or::Default(Mapping::to_bytes(signal)));
        Self { within: Some(Duration::ZERO), or }
    }
}

impl<S: Store> Parts<S> {
    fn add_wait<T: Signal>(&mut self, within: Option<Duration>, or: Or, input: Option<Mapping>) {
        let wait = Idle::Signal(Arc::new(Wait { within, or }));
        let check = |bytes: &[u8]| Signaled::<T>::OUTPUT.decode(bytes).map(drop).map_err(|error| error.to_string());
        let step = StepDefinition { input, check_output: check, ..StepDefinition::of_idle(T::NAME, wait) };
        self.add_idle(step, &[]);
        // Whoever sends the signal moves the saga beside the step that is under way.
        self.width = self.width.max(2);
    }
}

/// # Waiting for a message from outside
///
/// A wait is a step with the name of its [`Signal`]. [`Runtime::signal`](crate::Runtime::signal) sends one to the saga of a
/// key. Nothing waits meanwhile but a row, which falls due at the limit. What arrives before the step's turn is kept; what
/// comes twice, by its id, counts once; of two different ones the first counts. The message is the step's output:
/// `Output<Signaled<Approval>>` is a parameter of a later step.
///
/// ```
/// use std::time::Duration;
///
/// use saga_core::engine::SignalOutcome;
/// use saga_core::memory::MemoryStore;
/// use saga_core::{Outcome, Output, Runtime, Saga, Signal, Signaled, StepError, saga_step};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// enum Approval { Granted { by: String }, Declined }
///
/// impl Signal for Approval {
///     const NAME: &'static str = "approval";
/// }
///
/// #[saga_step]
/// async fn place_order(order: u32, Output(approval): Output<Signaled<Approval>>) -> Result<String, StepError> {
///     match approval {
///         Approval::Granted { by } => Ok(format!("order {order}, approved by {by}")),
///         Approval::Declined => Err(StepError::reject("declined")),
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let purchase = Saga::named("purchase")
///     .input::<u32>()
///     .wait_for::<Approval>(Duration::from_hours(48), |_order| Approval::Declined)
///     .step::<place_order>()
///     .build()?;
/// let runtime = Runtime::builder(MemoryStore::new()).saga(&purchase).start().await?;
///
/// let running = runtime.start(&purchase, "purchase-1", 10_248).await?;
/// let granted = Approval::Granted { by: "Ada".to_owned() };
/// assert_eq!(runtime.signal("purchase-1", "form-7", &granted).await?, SignalOutcome::Delivered);
/// assert_eq!(runtime.signal("purchase-1", "form-7", &granted).await?, SignalOutcome::Duplicate);
///
/// assert!(matches!(running.outcome().await?, Outcome::Completed { .. }));
/// assert_eq!(runtime.signal("purchase-1", "form-8", &Approval::Declined).await?, SignalOutcome::TooLate);
/// # runtime.shutdown().await;
/// # Ok(())
/// # }
/// ```
impl<S: Store, I: Payload, P> StepBuilder<S, I, P> {
    /// Adds a step that waits for a signal, and goes on with what `default` makes of the saga's input where none has
    /// arrived when the time is over.
    #[must_use]
    pub fn wait_for<T: Signal>(mut self, within: Duration, default: impl Fn(&I) -> T + Send + Sync + 'static) -> Self {
        self.parts.add_wait::<T>(Some(within), Or::Default(Mapping::to_value::<I, T>(default)), None);
        self
    }

    /// The same, for as long as the saga's input says. Where that is no time, it goes on at once, unless a signal came
    /// before.
    #[must_use]
    pub fn wait_for_with<T: Signal>(
        mut self,
        within: impl Fn(&I) -> Duration + Send + Sync + 'static,
        default: impl Fn(&I) -> T + Send + Sync + 'static,
    ) -> Self {
        let (within, default) = (Mapping::to_value::<I, Duration>(within), Mapping::to_value::<I, T>(default));
        self.parts.add_wait::<T>(None, Or::Default(default), Some(within));
        self
    }

    /// Adds a step that waits for a signal, and is rejected where none has arrived when the time is over.
    #[must_use]
    pub fn wait_or_reject<T: Signal>(mut self, within: Duration) -> Self {
        self.parts.add_wait::<T>(Some(within), Or::Reject, None);
        self
    }

    /// Adds a step that waits for a signal as long as that takes. The saga's deadline still ends it, and a cancel.
    #[must_use]
    pub fn wait_without_limit<T: Signal>(mut self) -> Self {
        self.parts.add_wait::<T>(Some(LONGEST), Or::Reject, None);
        self
    }
}

impl fmt::Debug for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wait").field("within", &self.within).finish_non_exhaustive()
    }
}
