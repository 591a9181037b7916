use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use super::Environment;

/// The time limit passed before the future was ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Elapsed;

/// Waits for `future`, at most for `limit`. The future is polled first, so what is ready at once never meets the limit.
///
/// # Cancel safety
/// Dropping it drops `future`.
pub(crate) async fn timeout<F: Future>(
    environment: &dyn Environment,
    limit: Duration,
    future: F,
) -> Result<F::Output, Elapsed> {
    let mut future = pin!(future);
    // Most step functions on an embedded store are ready at the first poll: a timer is made only for those that wait.
    if let Poll::Ready(output) = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await {
        return Ok(output);
    }
    let mut sleep = environment.sleep(limit);
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Ok(output)),
        Poll::Pending => sleep.as_mut().poll(cx).map(|()| Err(Elapsed)),
    })
    .await
}
