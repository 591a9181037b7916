//! A transport that keeps the answers of the services until it is told to deliver them.
//!
//! It stands for the time that a message takes, so that it can be seen what holds in between. Commands and undos pass at once.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use saga_core::store::{Answer, MessageId};
use saga_core::transport::{Incoming, Message, MessageKind, Subscription, Transport, TransportError};
use tokio::sync::watch;

use crate::event::ServiceEvent;

/// The transport. A clone is the same transport.
#[derive(Clone)]
pub struct HeldReplies {
    carrier: Arc<dyn Transport>,
    replies: watch::Sender<Replies>,
}

#[derive(Default)]
struct Replies {
    held: VecDeque<Message>,
    /// What was held once. A command that is sent again is answered again.
    known: BTreeSet<(Option<MessageId>, Option<&'static str>)>,
    /// The keys of the sagas that were answered, in this order. A key is not repeated for the next answer.
    turns: Vec<String>,
}

impl HeldReplies {
    /// Holds what this transport carries.
    pub fn over(carrier: impl Transport) -> Self {
        Self { carrier: Arc::new(carrier), replies: watch::Sender::default() }
    }

    /// Waits for the next answer to the saga with this key. It stays held.
    pub async fn next(&self, saga: &str) -> ServiceEvent {
        let mut replies = self.replies.subscribe();
        loop {
            if let Some(event) = replies.borrow_and_update().next(saga) {
                return event;
            }
            if replies.changed().await.is_err() {
                // There is a sender as long as `self` is there.
                std::future::pending::<()>().await;
            }
        }
    }

    /// The keys of the sagas that the services worked for, in this order: one for several answers in a row.
    pub fn turns(&self) -> Vec<String> {
        self.replies.borrow().turns.clone()
    }

    /// Delivers the next answer to the saga with this key, so often.
    ///
    /// The services were told that it is delivered when it was held. If it is lost here, the orchestrator asks again.
    pub fn deliver(&self, saga: &str, times: usize) {
        let mut taken = None;
        self.replies.send_if_modified(|replies| {
            let at = replies.held.iter().position(|message| is_of(message, saga));
            taken = at.and_then(|at| replies.held.remove(at));
            taken.is_some()
        });
        let Some(message) = taken else { return };
        let carrier = Arc::clone(&self.carrier);
        // A transport may answer only when the orchestrator has the message, and that may be down.
        tokio::spawn(async move {
            let failed = carrier.publish(vec![message; times]).await.into_iter().filter_map(Result::err);
            failed.for_each(|error| tracing::warn!(%error, "an answer was not delivered"));
        });
    }

    /// Holds a reply, unless the same answer was held and delivered before.
    fn holds(&self, message: &Message) -> bool {
        if message.kind != MessageKind::Reply {
            return false;
        }
        let mut is_held = false;
        self.replies.send_if_modified(|replies| {
            let is_new = replies.known.insert(answer_of(message));
            is_held = is_new || replies.held.iter().any(|held| answer_of(held) == answer_of(message));
            if is_new {
                replies.held.push_back(message.clone());
                let saga = message.headers.saga_key.clone().unwrap_or_default();
                if replies.turns.last() != Some(&saga) {
                    replies.turns.push(saga);
                }
            }
            is_new
        });
        is_held
    }
}

impl Replies {
    fn next(&self, saga: &str) -> Option<ServiceEvent> {
        self.held.iter().find(|message| is_of(message, saga)).and_then(ServiceEvent::of)
    }
}

fn is_of(message: &Message, saga: &str) -> bool {
    message.headers.saga_key.as_deref() == Some(saga)
}

fn answer_of(message: &Message) -> (Option<MessageId>, Option<&'static str>) {
    (message.headers.correlation, message.headers.answer.map(Answer::as_str))
}

#[async_trait]
impl Transport for HeldReplies {
    fn name(&self) -> &'static str {
        "held-replies"
    }

    async fn publish(&self, messages: Vec<Message>) -> Vec<Result<(), TransportError>> {
        let mut answers = Vec::with_capacity(messages.len());
        for message in messages {
            let is_held = self.holds(&message);
            let sent = if is_held { Ok(()) } else { self.carrier.publish(vec![message]).await.into_iter().collect() };
            answers.push(sent);
        }
        answers
    }

    fn redelivers_within(&self) -> Option<std::time::Duration> {
        self.carrier.redelivers_within()
    }

    async fn reachable(&self) -> Result<(), TransportError> {
        self.carrier.reachable().await
    }

    async fn subscribe(&self, subscription: Subscription) -> Result<Box<dyn Incoming>, TransportError> {
        self.carrier.subscribe(subscription).await
    }

    async fn dead_letters(
        &self,
        subscription: &str,
        prefetch: usize,
    ) -> Result<Option<Box<dyn Incoming>>, TransportError> {
        self.carrier.dead_letters(subscription, prefetch).await
    }
}

impl fmt::Debug for HeldReplies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldReplies").field("held", &self.replies.borrow().held.len()).finish_non_exhaustive()
    }
}
