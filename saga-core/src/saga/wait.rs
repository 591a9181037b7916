//! Steps of the engine's own that wait for a signal.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use super::definition::idle::{Idle, Or, SignalWait};
use super::{Mapping, SagaFn, StepBuilder, StepDefinition};
use crate::step::{NeededOutput, Payload, Signal, Signaled, Step};
use crate::store::Store;

/// The longest wait: a hundred years. A wait without a limit has this one.
pub(crate) const LONGEST: Duration = Duration::from_hours(100 * 365 * 24);

/// How long a saga waits for the signal `T`, and how it continues if none arrives ([`StepBuilder::wait_for`]).
pub struct Wait<I, T> {
    signal: SignalWait,
    /// Makes the limit, where it is not fixed.
    limit: Option<Mapping>,
    needed: Vec<NeededOutput>,
    types: PhantomData<fn(I) -> T>,
}

/// How long a saga waits for a signal. Call [`or`](Self::or) or [`or_reject`](Self::or_reject) to set how it continues if
/// none arrives.
pub struct WaitLimit<I> {
    within: Option<Duration>,
    limit: Option<Mapping>,
    needed: Vec<NeededOutput>,
    input: PhantomData<fn(I)>,
}

impl Wait<(), ()> {
    /// Waits this long, counted from when the saga reaches the step.
    pub fn within<I>(limit: Duration) -> WaitLimit<I> {
        WaitLimit { within: Some(limit), limit: None, needed: Vec::new(), input: PhantomData }
    }

    /// Waits for a duration that a closure makes: see [`SagaFn`]. With a limit of zero the saga continues at once; a signal
    /// that arrived before still counts.
    pub fn within_from<I: Payload, M>(limit: impl SagaFn<I, Duration, M>) -> WaitLimit<I> {
        let needed = limit.needed();
        WaitLimit { within: None, limit: Some(Mapping::to_value(limit)), needed, input: PhantomData }
    }

    /// Waits until a signal arrives. The deadline of the saga and a cancel still end the wait.
    pub fn without_limit<I, T>() -> Wait<I, T> {
        Wait::within(LONGEST).or_reject()
    }
}

impl<I> WaitLimit<I> {
    /// If none arrives, the saga continues with a signal that a closure makes: see [`SagaFn`].
    pub fn or<T: Signal, M>(self, default: impl SagaFn<I, T, M>) -> Wait<I, T>
    where
        I: Payload,
    {
        let Self { within, limit, mut needed, .. } = self;
        needed.extend(default.needed());
        let or = Or::Default(Mapping::to_value(default));
        Wait { signal: SignalWait { within, or }, limit, needed, types: PhantomData }
    }

    /// If none arrives, the step is rejected, and the saga compensates. Behind the pivot it cannot compensate, and is stuck: use
    /// [`or`](Self::or) or [`Wait::without_limit`] there.
    pub fn or_reject<T>(self) -> Wait<I, T> {
        let Self { within, limit, needed, .. } = self;
        Wait { signal: SignalWait { within, or: Or::Reject }, limit, needed, types: PhantomData }
    }
}

/// # Waiting for a signal
///
/// A wait is a built-in step with the name of its [`Signal`]. [`Runtime::signal`](crate::Runtime::signal) sends a signal to a
/// saga. The wait is a row that falls due at the limit; it occupies no task. A signal that arrives before the saga waits for
/// it is stored. A signal that is sent twice with the same id counts once. Of signals with different ids, the first counts.
/// The signal is the output of the step: a later step takes it as [`Signaled<Approval>`](Signaled).
///
/// ```
/// use std::time::Duration;
///
/// use saga_core::engine::SignalOutcome;
/// use saga_core::memory::MemoryStore;
/// use saga_core::{Outcome, Runtime, Saga, Signal, Signaled, StepError, Wait, saga_step};
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
/// async fn place_order(order: u32, Signaled(approval): Signaled<Approval>) -> Result<String, StepError> {
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
///     .wait_for::<Approval>(Wait::within(Duration::from_hours(48)).or(|_order: &u32| Approval::Declined))
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
    /// Adds a step that waits for the signal `T`. Its name is that of the signal.
    #[must_use]
    pub fn wait_for<T: Signal>(mut self, wait: Wait<I, T>) -> Self {
        let Wait { signal, limit, needed, .. } = wait;
        let check = |bytes: &[u8]| Signaled::<T>::OUTPUT.decode(bytes).map(drop).map_err(|error| error.to_string());
        let mapped = needed.iter().map(|needed| needed.step).collect();
        let idle = StepDefinition::of_idle(T::NAME, Idle::Signal(Arc::new(signal)));
        self.parts.add_idle(StepDefinition { input: limit, mapped, check_output: check, ..idle }, &needed);
        // The sender of the signal moves the saga beside the step that is under way.
        self.parts.width = self.parts.width.max(2);
        self
    }
}

impl<I, T> fmt::Debug for Wait<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wait").field("within", &self.signal.within).finish_non_exhaustive()
    }
}

impl<I> fmt::Debug for WaitLimit<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitLimit").field("within", &self.within).finish_non_exhaustive()
    }
}
