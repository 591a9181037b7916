//! The clock of the feature `test-clock`.

use std::fmt;
use std::sync::Arc;

use saga_core::env::{Activity, ActivityGuard, Environment};
use saga_core::store::Timestamp;

/// The machine's clock, or that of a test.
#[derive(Clone)]
pub(crate) struct ClockSource(Option<Arc<dyn Environment>>);

/// Holds the clock of a test while a call is under way.
pub(crate) struct Held {
    _guard: Option<Box<dyn ActivityGuard>>,
}

impl ClockSource {
    pub(crate) const MACHINE: Self = Self(None);

    pub(crate) fn of(environment: Arc<dyn Environment>) -> Self {
        Self(Some(environment))
    }

    /// The time of the test, if it gave a clock.
    pub(crate) fn now(&self) -> Option<Timestamp> {
        self.0.as_ref().map(|environment| Timestamp::of_environment(environment.now()))
    }

    /// The clock of the test stands still until this is dropped.
    pub(crate) fn hold(&self) -> Held {
        Held { _guard: self.0.as_ref().and_then(|environment| environment.enter(Activity::Store)) }
    }
}

impl fmt::Debug for ClockSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "a test's" } else { "the machine's" })
    }
}
