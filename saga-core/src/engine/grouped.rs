use std::future::Future;
use std::sync::{Mutex, PoisonError};

use tokio::sync::{mpsc, oneshot};

/// Calls that are made together: what arrives while one group is under way goes with the next, so that under load one
/// commit carries many, and an idle system waits for nobody.
#[derive(Debug)]
pub(super) struct Grouped<T, R> {
    sender: mpsc::UnboundedSender<Request<T, R>>,
    receiver: Mutex<Option<mpsc::UnboundedReceiver<Request<T, R>>>>,
}

/// A call that waits for its answer.
#[derive(Debug)]
pub(super) struct Request<T, R> {
    pub(super) call: T,
    answer: oneshot::Sender<R>,
}

impl<T, R> Request<T, R> {
    /// Answers the call. Whoever made it may be gone by now.
    pub(super) fn answer(self, answer: R) -> T {
        drop(self.answer.send(answer));
        self.call
    }
}

impl<T, R> Grouped<T, R> {
    pub(super) fn new() -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Self { sender, receiver: Mutex::new(Some(receiver)) }
    }

    /// Makes a call; nothing when nobody answers any more.
    ///
    /// # Cancel safety
    /// A call that was handed over is made, whether or not its caller waits.
    pub(super) async fn call(&self, call: T) -> Option<R> {
        let (answer, answered) = oneshot::channel();
        self.sender.send(Request { call, answer }).ok()?;
        answered.await.ok()
    }

    /// Serves the calls, `group_max` at a time, until it is dropped. Only the first to call it serves.
    pub(super) async fn serve<F: Future<Output = ()>>(
        &self,
        group_max: usize,
        mut make: impl FnMut(Vec<Request<T, R>>) -> F,
    ) {
        let receiver = self.receiver.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut receiver) = receiver else { return };
        let mut group = Vec::new();
        while receiver.recv_many(&mut group, group_max).await > 0 {
            make(std::mem::take(&mut group)).await;
        }
    }
}
