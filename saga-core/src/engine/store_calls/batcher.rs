//! Calls that are made together.

use std::future::Future;

use tokio::sync::{Mutex, mpsc, oneshot};

/// Batches calls: those that arrive while one batch runs are made in the next one. So under load one commit carries
/// many calls, and in an idle system no call waits.
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
    /// Answers the call. The caller may have gone by now.
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
    /// A call that was handed over is made, whether or not its caller waits.
    pub(crate) async fn call(&self, call: T) -> Option<R> {
        let (answer, answered) = oneshot::channel();
        self.sender.send(Request { call, answer }).ok()?;
        answered.await.ok()
    }

    /// Makes calls together and waits for all of them; `None` in place of each that is not answered.
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

    /// Serves the calls, `group_max` at a time, until it is dropped: one who serves at a time. The calls of a group whose
    /// `make` panics are not answered, and those behind them wait for the next who serves.
    pub(crate) async fn serve<F: Future<Output = ()>>(
        &self,
        group_max: usize,
        mut make: impl FnMut(Vec<Request<T, R>>) -> F,
    ) {
        let mut receiver = self.receiver.lock().await;
        let mut group = Vec::new();
        while receiver.recv_many(&mut group, group_max).await > 0 {
            make(std::mem::take(&mut group)).await;
        }
    }
}
