//! Panics of code that is not this crate's: step functions and their values, stores, transports, subscribers of the log.
//! Each is caught where that code is called, and becomes an error of that call.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use crate::env::BoxFuture;
use crate::log;

/// Calls a function; the error is what its panic said.
pub(crate) fn caught<T>(function: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(function)).map_err(|panic| {
        let message = message_of(&*panic).to_owned();
        // What a panic carries may be any value of the user.
        discard(panic);
        message
    })
}

/// Polls a future to its end; the error is what its panic said. Drop it as it is: dropping what a panic left is safe only
/// where [`Guarded`] holds the user's part of it.
pub(crate) async fn caught_while<F: Future>(future: F) -> Result<F::Output, String> {
    let mut future = pin!(future);
    poll_fn(|cx| match caught(|| future.as_mut().poll(cx)) {
        Ok(polled) => polled.map(Ok),
        Err(panic) => Poll::Ready(Err(panic)),
    })
    .await
}

/// Drops a value of the user; a panic in that is only logged.
pub(crate) fn discard<T>(value: T) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        log::warn!(panic = message_of(&*panic), "value panicked on drop");
        if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
            // It panics whenever it is dropped.
            std::mem::forget(again);
        }
    }
}

/// A future of the user. A call that comes to its time limit is dropped in the middle, and with it whatever the function
/// holds at that moment: a panic in that is only logged.
pub(crate) struct Guarded<'a, T>(Option<BoxFuture<'a, T>>);

impl<'a, T> Guarded<'a, T> {
    pub(crate) fn new(future: BoxFuture<'a, T>) -> Self {
        Self(Some(future))
    }
}

impl<T> Future for Guarded<'_, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        match &mut self.0 {
            Some(future) => future.as_mut().poll(cx),
            None => Poll::Pending,
        }
    }
}

impl<T> Drop for Guarded<'_, T> {
    fn drop(&mut self) {
        discard(self.0.take());
    }
}

/// What a panic said.
fn message_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("(no message)")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It panics when it is dropped, and carries as many more of its kind.
    struct Bomb(u32);

    impl Drop for Bomb {
        fn drop(&mut self) {
            if self.0 > 0 {
                std::panic::panic_any(Self(self.0 - 1));
            }
        }
    }

    #[test]
    fn what_panics_when_it_is_dropped_is_dropped() {
        discard(Bomb(0));
        discard(Bomb(1));
        discard(Bomb(3));
        assert_eq!(caught(|| std::panic::panic_any(Bomb(2))), Err::<(), _>("(no message)".to_owned()));
        assert_eq!(caught(|| panic!("no {}", "tea")), Err::<(), _>("no tea".to_owned()));
    }

    #[test]
    fn a_guarded_future_may_be_dropped_in_the_middle() {
        let mut future = Guarded::new(Box::pin(async {
            let _bomb = Bomb(1);
            std::future::pending::<()>().await;
        }));
        assert!(Pin::new(&mut future).poll(&mut Context::from_waker(std::task::Waker::noop())).is_pending());
        drop(future);
    }
}
