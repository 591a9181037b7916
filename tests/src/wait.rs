use std::future::Future;
use std::time::Duration;

/// The longest that a scenario may take; in virtual time that is no time at all.
const LIMIT: Duration = Duration::from_mins(10);
/// The longest that a scenario may wait for one thing, so that a scenario which hangs says for what.
const WAIT_MAX: Duration = Duration::from_mins(5);
/// How long to wait between two looks.
const PAUSE: Duration = Duration::from_millis(20);

/// The future's output, or a panic when it takes too long.
///
/// # Panics
/// After ten minutes.
pub async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(LIMIT, future).await.expect("the scenario ends in time")
}

/// Looks until there is something to see.
///
/// # Panics
/// After five minutes.
pub async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let looking = async {
        loop {
            if let Some(seen) = look().await {
                return seen;
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::time::timeout(WAIT_MAX, looking).await.unwrap_or_else(|_| panic!("{what} did not happen in time"))
}
