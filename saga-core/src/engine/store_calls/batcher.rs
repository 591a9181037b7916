//! Batches concurrent calls into one.

use std::future::Future;

use tokio::sync::{Mutex, mpsc, oneshot};

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

    /// Serves calls, at most `group_max` in a batch, until it is dropped. One task serves at a time. If `make` panics, the calls of its
    /// batch are not answered, and later ones wait for the next task that serves.
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
