//! A transport that does to messages what networks do.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use saga_core::transport::{
    Incoming, Message, MessageKind, Subscription, Transport, TransportError, TransportErrorKind,
};

/// What becomes of messages.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meddling {
    /// How often each is sent beside the first time.
    pub(crate) copies: usize,
    /// The next message of each of these kinds is confirmed and lost, in this order.
    pub(crate) lost: Vec<MessageKind>,
    /// Messages of these kinds are refused.
    pub(crate) refuses: Vec<MessageKind>,
}

#[derive(Clone)]
pub(crate) struct Meddler {
    pub(crate) inner: Arc<dyn Transport>,
    meddling: Arc<Mutex<Meddling>>,
    lost: Arc<Mutex<usize>>,
}

impl Meddler {
    pub(crate) fn new(inner: Arc<dyn Transport>, meddling: Meddling) -> Self {
        Self { inner, meddling: Arc::new(Mutex::new(meddling)), lost: Arc::default() }
    }

    pub(crate) fn lost_so_far(&self) -> usize {
        *self.lost.lock().unwrap()
    }

    fn loses(&self, message: &Message) -> bool {
        let mut meddling = self.meddling.lock().unwrap();
        let is_lost = meddling.lost.first() == Some(&message.kind);
        if is_lost {
            meddling.lost.remove(0);
            *self.lost.lock().unwrap() += 1;
        }
        is_lost
    }

    async fn publish_one(&self, message: Message) -> Result<(), TransportError> {
        let (copies, refuses) = {
            let meddling = self.meddling.lock().unwrap();
            (meddling.copies, meddling.refuses.contains(&message.kind))
        };
        if refuses {
            return Err(TransportError::new(TransportErrorKind::Refused, "publish", "the test refuses it"));
        }
        if self.loses(&message) {
            return Ok(());
        }
        let all = vec![message; copies + 1];
        self.inner.publish(all).await.into_iter().collect()
    }
}

#[async_trait]
impl Transport for Meddler {
    fn name(&self) -> &'static str {
        "meddler"
    }

    async fn publish(&self, messages: Vec<Message>) -> Vec<Result<(), TransportError>> {
        let mut answers = Vec::new();
        for message in messages {
            answers.push(self.publish_one(message).await);
        }
        answers
    }

    async fn subscribe(&self, subscription: Subscription) -> Result<Box<dyn Incoming>, TransportError> {
        self.inner.subscribe(subscription).await
    }

    async fn dead_letters(
        &self,
        subscription: &str,
        prefetch: usize,
    ) -> Result<Option<Box<dyn Incoming>>, TransportError> {
        self.inner.dead_letters(subscription, prefetch).await
    }
}
