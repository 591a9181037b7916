//! How long a step waits that only waits.

use std::time::Duration;

use crate::saga::{Idle, LONGEST, StepDefinition, StepRun};
use crate::store::Store;

/// How long a step waits from when its turn has come, if it is one that only waits. What it waits for may be there.
///
/// A moment is compared with the store's clock, which is read when the row is claimed: that is at once.
pub(crate) fn idle_for<S: Store>(step: &StepDefinition<S>, input: &[u8]) -> Option<Duration> {
    let StepRun::Idle(idle) = &step.run else { return None };
    let waits = match idle {
        // It asks for its lock at once.
        Idle::Lock(_) => return None,
        Idle::For(duration) => *duration,
        Idle::Mapped => serde_json::from_slice(input).unwrap_or_default(),
        Idle::Until => Duration::ZERO,
        Idle::Signal(wait) => wait.within.unwrap_or_else(|| serde_json::from_slice(input).unwrap_or_default()),
    };
    // A duration of the user may be any; added to a moment, it must give one.
    Some(waits.min(LONGEST))
}
