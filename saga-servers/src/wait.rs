//! Waiting for what another process does.

use std::time::Duration;

/// How long between two looks.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Looks until there is an answer, for `patience` at most.
pub(crate) async fn until<T, E>(
    patience: Duration,
    mut look: impl AsyncFnMut() -> Result<Option<T>, E>,
) -> Result<Option<T>, E> {
    let looking = async {
        loop {
            if let Some(found) = look().await? {
                return Ok(found);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    match tokio::time::timeout(patience, looking).await {
        Ok(found) => found.map(Some),
        Err(_) => Ok(None),
    }
}
