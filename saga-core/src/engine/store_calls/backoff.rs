//! The state of a caller that retries a call of the store.

use crate::store::{StoreError, StoreErrorKind};
use crate::unwind::caught_while;

/// The retries of one caller. It is made before the first attempt, so that the caller notices a recovery during that attempt.
#[derive(Debug)]
pub(crate) struct Backoff {
    pub(super) failures: u32,
    /// How often the store had recovered when the attempt began.
    pub(super) recoveries: u64,
}

/// Calls the store. A panic of the store is an error with an unknown outcome.
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
