//! What goes on while virtual time must stand still, or may pass.

use std::task::{Context, Poll};
use std::time::Duration;

/// What an environment is told to go on: see [`Environment::enter`](super::Environment::enter).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Activity {
    /// An external function of the application runs. It may wait for another system.
    Call,
    /// A function of the application runs inside a transaction of the store.
    Transaction,
    /// A call of the store, of the transport or of the archive is under way.
    Store,
    /// A caller waits for what the runtime does.
    Waiting,
}

/// An [`Activity`] that goes on until this is dropped.
pub trait ActivityGuard: Send + Sync {
    /// Surrounds one poll of the activity's future: `poll` is called once, with the context that it is to be polled with.
    fn poll(&self, cx: &mut Context<'_>, poll: &mut dyn FnMut(&mut Context<'_>) -> Poll<()>) -> Poll<()>;
}

/// A wait before the next look for what may have changed without a notice: see [`Environment::pause`](super::Environment::pause).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pause {
    /// How long to wait.
    pub interval: Duration,
    /// When there is something to find, as far as that is known. In real time the look is not made before the interval has passed.
    pub due_in: Option<Duration>,
    /// Whether the look before this pause found something.
    pub found: bool,
}

impl Pause {
    /// A pause after a look that found nothing, and did not say when there will be something.
    pub fn of(interval: Duration) -> Self {
        Self { interval, due_in: None, found: false }
    }
}
