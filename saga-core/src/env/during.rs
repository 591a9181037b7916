use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use super::activity::Activity;
use super::environment::Environment;

/// Runs a future as an activity of the environment. Where the environment takes no note of it, it costs one comparison for
/// each poll. A large future is passed pinned, so that it is not moved.
///
/// # Cancel safety
/// That of the future.
pub async fn during<F: Future>(environment: &dyn Environment, activity: Activity, future: F) -> F::Output {
    let guard = environment.enter(activity);
    let mut future = pin!(future);
    poll_fn(|cx| {
        let Some(guard) = &guard else { return future.as_mut().poll(cx) };
        let mut output = None;
        let polled = guard.poll(cx, &mut |cx| future.as_mut().poll(cx).map(|ready| output = Some(ready)));
        match output {
            Some(output) if polled.is_ready() => Poll::Ready(output),
            _ => Poll::Pending,
        }
    })
    .await
}
