//! The receiving end of a subscription.
//!
//! # Cancel safety
//! A dropped `receive` loses nothing: a task asks for messages, and keeps those that have arrived. A dropped `settle` has settled all
//! or nothing.

use std::pin::pin;
use std::sync::Arc;

use async_trait::async_trait;
use saga_core::transport::{DeadLetterInfo, Delivery, Incoming, Settlement, TransportError, TransportErrorKind};

use crate::held::Received;
use crate::subscribed::Subscribed;
use crate::wire::decode;
use crate::{keeper, poller, settler};
use saga_core::__private::log;

/// The reason for which SQS gives a message up.
const REASON: &str = "delivery_limit";

/// The receiving end of a subscription.
pub(crate) struct Receiver {
    subscribed: Arc<Subscribed>,
    /// For dead letters: the queue that they were in.
    died_in: Option<String>,
}

impl Receiver {
    pub(crate) fn start(subscribed: Arc<Subscribed>, died_in: Option<String>) -> Self {
        spawn(&subscribed, poller::run(Arc::clone(&subscribed)));
        spawn(&subscribed, settler::run(Arc::clone(&subscribed)));
        spawn(&subscribed, keeper::run(Arc::clone(&subscribed)));
        Self { subscribed, died_in }
    }

    fn delivery(&self, tag: u64, received: Received) -> Delivery {
        let options = &self.subscribed.topology.options;
        let message = decode(&received.attributes, &received.body, options.payload_bytes_max);
        if let Err(unreadable) = &message {
            log::warn!(queue = self.subscribed.needs.queue, error = unreadable.problem, "malformed message");
        }
        let dead_letter = self.died_in.as_ref().map(|queue| DeadLetterInfo {
            queue: received.died_in.unwrap_or_else(|| queue.clone()),
            reason: REASON.to_owned(),
            deliveries: options.receives_max(),
        });
        Delivery { tag, redelivered: received.receives > 1, message, dead_letter, user: None }
    }
}

/// Runs a task of a subscription. If it panics, in credentials of the application for example, the subscription ends.
fn spawn(subscribed: &Arc<Subscribed>, task: impl Future<Output = ()> + Send + 'static) {
    let panicked = Panicked(Arc::clone(subscribed));
    tokio::spawn(async move {
        let _panicked = panicked;
        task.await;
    });
}

struct Panicked(Arc<Subscribed>);

impl Drop for Panicked {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let detail = "a task of the subscription panicked; it is subscribed again";
            self.0.fail(&TransportError::new(TransportErrorKind::Unavailable, "receive", detail));
            self.0.close();
            self.0.stopped();
        }
    }
}

#[async_trait]
impl Incoming for Receiver {
    async fn receive(&mut self, limit: usize) -> Result<Vec<Delivery>, TransportError> {
        loop {
            let mut news = pin!(self.subscribed.news.notified());
            // Registered before the look, so that a message in between is not missed.
            news.as_mut().enable();
            let taken = {
                let mut state = self.subscribed.lock();
                let taken = state.held.take(limit.max(1));
                if taken.is_empty() {
                    if let Some((kind, detail)) = &state.failed {
                        return Err(TransportError::new(*kind, "receive", detail.clone()));
                    }
                    if state.held.is_closed() {
                        let detail = "the transport was closed";
                        return Err(TransportError::new(TransportErrorKind::Closed, "receive", detail));
                    }
                }
                taken
            };
            if !taken.is_empty() {
                return Ok(taken.into_iter().map(|(tag, received)| self.delivery(tag, received)).collect());
            }
            news.await;
        }
    }

    async fn settle(&mut self, settled: &[(u64, Settlement)]) -> Result<(), TransportError> {
        let limit = self.subscribed.topology.options.receives_max();
        let mut given_up = 0_u32;
        {
            let mut state = self.subscribed.lock();
            for (tag, settlement) in settled {
                let receives = state.held.settle(*tag, *settlement);
                let is_last = *settlement == Settlement::Reject && receives.is_some_and(|receives| receives >= limit);
                given_up += u32::from(is_last && self.died_in.is_none());
            }
        }
        if given_up > 0 {
            log::warn!(queue = self.subscribed.needs.queue, count = given_up, "delivery limit reached");
        }
        self.subscribed.room.notify_one();
        self.subscribed.settled.notify_one();
        Ok(())
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.subscribed.close();
    }
}
