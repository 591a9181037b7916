//! How long to wait before what failed is tried again.

use std::time::Duration;

/// The pause before the store is asked again for the first time.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);

/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// How long to wait before what failed so many times, and once more, is asked for again.
pub(crate) fn backoff_after(failures: u32) -> Duration {
    PAUSE.saturating_mul(1 << failures.min(10)).min(PAUSE_MAX)
}
