use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use saga_core::env::Environment;
use saga_core::store::Timestamp;

use super::clock::Clock;
use super::environment::VirtualEnvironment;
use super::kinds::{SleepKind, TimeStatistics};
use super::sleep::VirtualSleep;

/// A clock that a test moves, for the runtimes and the stores of the test together.
///
/// Give it to the store and to the runtime:
///
/// ```
/// use std::time::Duration;
///
/// use saga_core::memory::MemoryStore;
/// use saga_core::store::Status;
/// use saga_core::{Runtime, Saga, StepError, saga_step};
/// use saga_testkit::VirtualTime;
///
/// #[saga_step]
/// async fn remind(_customer: String) -> Result<(), StepError> {
///     Ok(())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let time = VirtualTime::new();
/// let reminder =
///     Saga::named("reminder").input::<String>().sleep("pause", Duration::from_hours(24)).step::<remind>().build()?;
/// let store = MemoryStore::with_environment(time.environment());
/// let runtime = Runtime::builder(store).environment(time.environment()).saga(&reminder).start().await?;
///
/// let running = runtime.start(&reminder, "reminder-1", "Ada".to_owned()).await?;
/// time.advance(Duration::from_hours(23)).await;
/// assert_eq!(runtime.status("reminder-1").await?.unwrap().summary.status, Status::Running);
///
/// // Time also passes by itself while a test waits for an outcome.
/// running.outcome().await?;
/// assert_eq!(time.elapsed(), Duration::from_hours(24));
/// # runtime.shutdown().await;
/// # Ok(())
/// # }
/// ```
///
/// A SQLite or PostgreSQL store takes the clock by its option `test_clock`, which exists only with the cargo feature
/// `test-clock` of its crate.
///
/// # When time passes
/// Time passes during [`advance`](Self::advance), and while a caller awaits what the runtime does: a start, an outcome, a
/// shutdown. Otherwise it stands still, so a test can look at the state of its sagas. (Temporal's test environment, which skips
/// time, has the same rule.)
///
/// Time never passes while something runs: a step, a call of the store, a message on its way to the transport, or a task that is
/// ready to run. A step that waits for another system in real time holds the clock as long as it waits. A step that is to
/// take some virtual time awaits [`sleep`](Self::sleep).
///
/// Between two events nothing happens, so the clock jumps: a day costs a few calls of the store. Before each jump every runtime
/// polls the store once, so that it finds what another process left without a notice. A time at which a
/// step is due is exact; how soon a process finds that another one has died is not.
///
/// Do not combine it with `tokio::time::pause` (`start_paused`): timeouts of a database driver would be skipped as well.
#[derive(Clone)]
pub struct VirtualTime {
    clock: Arc<Clock>,
}

impl VirtualTime {
    /// A clock that shows 2025-01-01 00:00 UTC.
    pub fn new() -> Self {
        Self { clock: Clock::new() }
    }

    /// The environment of a runtime, and the clock of a store. Each runtime gets one of its own.
    ///
    /// # Panics
    /// Outside of a tokio runtime, which runs the tasks.
    pub fn environment(&self) -> Arc<dyn Environment> {
        Arc::new(VirtualEnvironment::new(&self.clock))
    }

    /// How much time has passed.
    pub fn elapsed(&self) -> Duration {
        self.clock.now()
    }

    /// The time, as a store records it.
    pub fn now(&self) -> Timestamp {
        Timestamp::of_environment(self.elapsed())
    }

    /// Lets this much time pass, from event to event. When it returns, everything that is due by then was done, and nothing
    /// runs any more.
    ///
    /// It waits for steps that run. A step that never ends holds it for ever.
    ///
    /// # Cancel safety
    /// When dropped, a part of the time may have passed.
    pub async fn advance(&self, duration: Duration) {
        VirtualSleep::new(&self.clock, duration, SleepKind::Advance).await;
    }

    /// Waits until this much time has passed: for a fake of another system that takes its time. The step that awaits it does not
    /// hold the clock meanwhile.
    ///
    /// # Panics
    /// When it is awaited in a step that runs in a transaction of a database, which can do nothing else meanwhile. On the store in
    /// memory a transaction may take its time.
    ///
    /// # Cancel safety
    /// When dropped, it waits no longer.
    pub fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send + 'static {
        let sleep = VirtualSleep::new(&self.clock, duration, SleepKind::OfStep);
        async move {
            sleep.await;
        }
    }

    /// How time has passed so far: for assertions that a test does not poll through a day.
    pub fn statistics(&self) -> TimeStatistics {
        self.clock.statistics()
    }

    pub(crate) fn clock(&self) -> &Arc<Clock> {
        &self.clock
    }
}

impl Default for VirtualTime {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for VirtualTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VirtualTime").field("now", &self.now()).finish_non_exhaustive()
    }
}
