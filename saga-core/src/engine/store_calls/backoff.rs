//! How long to wait before the store is asked again.

use std::time::Duration;

use crate::store::{StoreError, StoreErrorKind};
use crate::unwind::caught_while;

/// The pause before the store is asked again for the first time.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);

/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// How long a caller waits between its attempts to reach the store. The caller makes it before the first attempt, so that it
/// notices a recovery that happens during that attempt.
#[derive(Debug)]
pub(crate) struct Backoff {
    pub(super) failures: u32,
    /// How often the store had recovered when the attempt began.
    pub(super) recoveries: u64,
}

/// How long to wait before what failed so many times, and once more, is asked for again.
pub(crate) fn backoff_after(failures: u32) -> Duration {
    PAUSE.saturating_mul(1 << failures.min(10)).min(PAUSE_MAX)
}

/// What the store answers. A panic of it is an error of this call, which may have been carried out.
pub(crate) async fn catch_panic<T>(
    operation: &'static str,
    call: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let panicked = |panic| {
        let detail = format!("the store panicked: {panic}");
        Err(StoreError::new(StoreErrorKind::UnknownCommit, operation, detail))
    };
    caught_while(call).await.unwrap_or_else(panicked)
}
