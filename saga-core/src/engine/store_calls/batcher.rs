//! Batches concurrent calls into one.

use std::future::Future;

use tokio::sync::{Mutex, MutexGuard, mpsc, oneshot};

use crate::step::CancelSignal;

/// Batches calls: those that arrive while a batch runs form the next one. Under load one commit carries many calls, and in an idle
/// system no call waits.
#[derive(Debug)]
pub(crate) struct Batcher<T, R> {
    sender: mpsc::UnboundedSender<Request<T, R>>,
    receiver: Mutex<mpsc::UnboundedReceiver<Request<T, R>>>,
}

/// A call that waits for its answer.
#[derive(Debug)]
pub(crate) struct Request<T, R> {
    pub(crate) call: T,
    answer: oneshot::Sender<R>,
}

impl<T, R> Request<T, R> {
    /// Answers the call, if its caller still waits, and returns it.
    pub(crate) fn answer(self, answer: R) -> T {
        drop(self.answer.send(answer));
        self.call
    }
}

impl<T, R> Batcher<T, R> {
    pub(crate) fn new() -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Self { sender, receiver: Mutex::new(receiver) }
    }

    /// Makes a call; `None` if the task that answers has stopped.
    ///
    /// # Cancel safety
    /// A call that was queued is made even if its caller is dropped.
    pub(crate) async fn call(&self, call: T) -> Option<R> {
        let (answer, answered) = oneshot::channel();
        self.sender.send(Request { call, answer }).ok()?;
        answered.await.ok()
    }

    /// Makes several calls and waits for all of them; `None` for each that is not answered.
    ///
    /// # Cancel safety
    /// That of [`call`](Self::call).
    pub(crate) async fn call_all(&self, calls: Vec<T>) -> Vec<Option<R>> {
        let hand_over = |call| {
            let (answer, answered) = oneshot::channel();
            self.sender.send(Request { call, answer }).ok().map(|()| answered)
        };
        let handed_over: Vec<_> = calls.into_iter().map(hand_over).collect();
        let mut answers = Vec::with_capacity(handed_over.len());
        for answered in handed_over {
            answers.push(match answered {
                Some(answered) => answered.await.ok(),
                None => None,
            });
        }
        answers
    }

    /// Answers no call any more. For a runtime that has stopped: the task that serves does this as well, unless it was never polled.
    pub(crate) fn close(&self) {
        if let Ok(mut receiver) = self.receiver.try_lock() {
            close(&mut receiver);
        }
    }

    /// Serves calls, at most `group_max` in a batch, until it is dropped. One task serves at a time. If `make` panics, the calls of its
    /// batch are not answered, and later ones wait for the next task that serves. Once the runtime has `stopped`, no call is answered
    /// any more.
    pub(crate) async fn serve<F: Future<Output = ()>>(
        &self,
        stopped: &CancelSignal,
        group_max: usize,
        mut make: impl FnMut(Vec<Request<T, R>>) -> F,
    ) {
        let mut serving = Serving { receiver: self.receiver.lock().await, stopped };
        let mut group = Vec::new();
        while serving.receiver.recv_many(&mut group, group_max).await > 0 {
            make(std::mem::take(&mut group)).await;
        }
    }
}

/// The task that serves. When it ends with the runtime, those that still wait are told, and so are all that come later.
struct Serving<'a, T, R> {
    receiver: MutexGuard<'a, mpsc::UnboundedReceiver<Request<T, R>>>,
    stopped: &'a CancelSignal,
}

impl<T, R> Drop for Serving<'_, T, R> {
    fn drop(&mut self) {
        if self.stopped.is_cancelled() {
            close(&mut self.receiver);
        }
    }
}

fn close<T, R>(receiver: &mut mpsc::UnboundedReceiver<Request<T, R>>) {
    receiver.close();
    while receiver.try_recv().is_ok() {}
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::time::{sleep, timeout};

    use super::Batcher;
    use crate::step::CancelSignal;

    #[tokio::test(start_paused = true)]
    async fn once_the_runtime_has_stopped_no_call_waits_any_more() {
        let (calls, stopped) = (Arc::new(Batcher::<u32, u32>::new()), CancelSignal::new());
        let serving = tokio::spawn({
            let (calls, stopped) = (Arc::clone(&calls), stopped.clone());
            async move { calls.serve(&stopped, 1, |_| pending()).await }
        });
        let call = |number| {
            let calls = Arc::clone(&calls);
            tokio::spawn(async move { timeout(Duration::from_hours(1), calls.call(number)).await })
        };
        let waiting = [call(1), call(2)];
        sleep(Duration::from_secs(1)).await;
        stopped.cancel();
        serving.abort();
        for waiting in waiting {
            assert_eq!(waiting.await.unwrap(), Ok(None));
        }
        assert_eq!(call(3).await.unwrap(), Ok(None));
    }

    #[tokio::test(start_paused = true)]
    async fn no_call_waits_for_a_task_that_was_stopped_before_its_first_poll() {
        let calls = Arc::new(Batcher::<u32, u32>::new());
        let waiting = tokio::spawn({
            let calls = Arc::clone(&calls);
            async move { timeout(Duration::from_hours(1), calls.call(1)).await }
        });
        sleep(Duration::from_secs(1)).await;
        calls.close();
        assert_eq!(waiting.await.unwrap(), Ok(None));
        assert_eq!(timeout(Duration::from_hours(1), calls.call(2)).await, Ok(None));
    }
}
