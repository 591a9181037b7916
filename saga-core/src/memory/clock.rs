//! The clock of the store.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, SystemTime};

use crate::env::{Activity, BoxFuture, Environment};
use crate::store::Timestamp;

/// The store's clock. It decides leases and due times.
pub(super) enum Clock {
    /// The machine's: the wall clock once, and after that a clock that never goes backwards.
    Machine { origin_micros: i64, since: tokio::time::Instant },
    /// An environment's, so that a simulation controls the time.
    Environment(Arc<dyn Environment>),
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "this store is its own database, whose clock is the machine's")]
    pub(super) fn machine() -> Self {
        let origin = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self::Machine { origin_micros: micros(origin), since: tokio::time::Instant::now() }
    }

    pub(super) fn now(&self) -> Timestamp {
        match self {
            Self::Machine { origin_micros, since } => Timestamp(*origin_micros).plus(since.elapsed()),
            Self::Environment(environment) => Timestamp::of_environment(environment.now()),
        }
    }
}

impl Clock {
    /// A call of the store begins. It waits for nothing outside of this process, so virtual time need not stand still.
    pub(super) fn note_call(&self) {
        if let Self::Environment(environment) = self {
            drop(environment.enter(Activity::Store));
        }
    }

    /// The output of the future, or `None` at the limit. A future that is ready at once needs no timer.
    pub(super) async fn within<F: Future>(&self, limit: Duration, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        if let Poll::Ready(output) = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await {
            return Some(output);
        }
        let mut sleep: BoxFuture<'static, ()> = match self {
            Self::Machine { .. } if tokio::runtime::Handle::try_current().is_ok() => {
                Box::pin(tokio::time::sleep(limit))
            }
            // Without a runtime there is no timer.
            Self::Machine { .. } => Box::pin(std::future::pending()),
            Self::Environment(environment) => environment.sleep(limit),
        };
        poll_fn(|cx| match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => sleep.as_mut().poll(cx).map(|()| None),
        })
        .await
    }
}

/// Arithmetic with the store's times.
pub(super) trait Moment {
    fn plus(self, duration: Duration) -> Self;
    fn minus(self, duration: Duration) -> Self;
    fn since(self, earlier: Self) -> Duration;
}

impl Moment for Timestamp {
    fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(micros(duration)))
    }

    fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(micros(duration)))
    }

    fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}
