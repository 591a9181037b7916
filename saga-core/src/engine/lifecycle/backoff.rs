//! The pauses between attempts of a call that fails.

use std::time::Duration;

/// The first pause.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);

/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// The pause after one more failure than `failures`.
pub(crate) fn backoff_after(failures: u32) -> Duration {
    PAUSE.saturating_mul(1 << failures.min(10)).min(PAUSE_MAX)
}
