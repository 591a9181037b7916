//! Waiting for what has to happen.

use std::time::Duration;

/// How long anything may take that has to happen.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);
/// How often it is looked at.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Waits until the question is answered.
pub(crate) async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let asked = async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    tokio::time::timeout(PATIENCE, asked).await.unwrap_or_else(|_| panic!("{what} did not happen within {PATIENCE:?}"))
}

/// Waits until it holds.
pub(crate) async fn until_holds(what: &str, mut holds: impl FnMut() -> bool) {
    until(what, async || holds().then_some(())).await;
}
