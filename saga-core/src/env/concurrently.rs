use std::future::poll_fn;
use std::task::Poll;

use super::BoxFuture;

/// Polls all futures in this task, and returns their outputs in the order of the futures.
pub(crate) async fn concurrently<T>(mut futures: Vec<BoxFuture<'_, T>>) -> Vec<T> {
    let mut outputs: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    poll_fn(|cx| {
        for (future, output) in futures.iter_mut().zip(&mut outputs) {
            if output.is_none()
                && let Poll::Ready(value) = future.as_mut().poll(cx)
            {
                *output = Some(value);
            }
        }
        if outputs.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    outputs.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{Instant, sleep};

    use super::concurrently;
    use crate::env::BoxFuture;

    #[tokio::test(start_paused = true)]
    async fn the_outputs_come_in_order_when_the_last_future_has_ended() {
        let began = Instant::now();
        let after = |seconds| -> BoxFuture<'static, u64> {
            Box::pin(async move {
                sleep(Duration::from_secs(seconds)).await;
                seconds
            })
        };
        assert_eq!(concurrently(vec![after(3), after(1), after(2)]).await, [3, 1, 2]);
        assert_eq!(began.elapsed().as_secs(), 3);
        assert_eq!(concurrently(Vec::<BoxFuture<'_, ()>>::new()).await, []);
    }
}
