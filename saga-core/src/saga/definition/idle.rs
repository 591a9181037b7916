//! What a step waits for that does nothing else.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::saga::Mapping;

/// What a step waits for that does nothing else.
#[derive(Debug, Clone)]
pub(crate) enum Idle {
    /// So much time.
    For(Duration),
    /// As much time as its mapping gave.
    Mapped,
    /// The moment that its mapping gave.
    Until,
    /// A message from outside.
    Signal(Arc<SignalWait>),
    /// A semantic lock on the entities that its mapping gave.
    Lock(LockWait),
}

/// How a step takes its semantic lock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LockWait {
    /// How long it waits at most.
    pub(crate) within: Duration,
}

/// What the step of a wait does.
#[derive(Clone)]
pub(crate) struct SignalWait {
    /// `None` where its mapping makes it.
    pub(crate) within: Option<Duration>,
    pub(crate) or: Or,
}

/// What follows if no signal arrives in time.
#[derive(Clone)]
pub(crate) enum Or {
    /// The saga goes on with this one.
    Default(Mapping),
    /// The step is rejected.
    Reject,
}

impl Idle {
    /// The same where no time passes: it is over at once, with that signal if it waits for one.
    pub(in crate::saga) fn played(&self, signal: Option<Vec<u8>>) -> Self {
        match self {
            Self::For(_) | Self::Mapped | Self::Until => Self::For(Duration::ZERO),
            Self::Signal(wait) => Self::Signal(Arc::new(wait.over(signal))),
            Self::Lock(wait) => Self::Lock(*wait),
        }
    }
}

impl SignalWait {
    /// The same wait, whose time is over; with a signal, that stands for what did not arrive.
    pub(in crate::saga) fn over(&self, signal: Option<Vec<u8>>) -> Self {
        let or = signal.map_or_else(|| self.or.clone(), |signal| Or::Default(Mapping::to_bytes(signal)));
        Self { within: Some(Duration::ZERO), or }
    }
}

impl fmt::Debug for SignalWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignalWait").field("within", &self.within).finish_non_exhaustive()
    }
}
