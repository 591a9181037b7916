//! How long to wait before the store is asked again.

use crate::store::{StoreError, StoreErrorKind};
use crate::unwind::caught_while;

/// How long a caller waits between its attempts to reach the store. The caller makes it before the first attempt, so that it
/// notices a recovery that happens during that attempt.
#[derive(Debug)]
pub(crate) struct Backoff {
    pub(super) failures: u32,
    /// How often the store had recovered when the attempt began.
    pub(super) recoveries: u64,
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
