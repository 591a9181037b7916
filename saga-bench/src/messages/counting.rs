//! A transport that counts what was confirmed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use saga_core::transport::{Incoming, Message, Subscription, Transport, TransportError};
use tokio::sync::Notify;

/// Hands everything on, and counts.
#[derive(Clone)]
pub(super) struct Counting {
    inner: Arc<dyn Transport>,
    count: Arc<Count>,
}

#[derive(Debug, Default)]
struct Count {
    confirmed: AtomicU32,
    refused: AtomicU32,
    changed: Notify,
}

impl Counting {
    pub(super) fn new(inner: Arc<dyn Transport>) -> Self {
        Self { inner, count: Arc::default() }
    }

    /// Waits until so many messages were confirmed; answers how many were refused meanwhile.
    pub(super) async fn confirmed(&self, messages: u32) -> u32 {
        while self.count.confirmed.load(Ordering::Acquire) < messages {
            self.count.changed.notified().await;
        }
        self.count.refused.load(Ordering::Acquire)
    }
}

#[async_trait]
impl Transport for Counting {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    async fn publish(&self, messages: Vec<Message>) -> Vec<Result<(), TransportError>> {
        let answers = self.inner.publish(messages).await;
        let confirmed = answers.iter().filter(|answer| answer.is_ok()).count();
        self.count.refused.fetch_add((answers.len() - confirmed) as u32, Ordering::AcqRel);
        self.count.confirmed.fetch_add(confirmed as u32, Ordering::AcqRel);
        self.count.changed.notify_one();
        answers
    }

    async fn subscribe(&self, subscription: Subscription) -> Result<Box<dyn Incoming>, TransportError> {
        self.inner.subscribe(subscription).await
    }
}
