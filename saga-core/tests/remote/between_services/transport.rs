//! A transport that does what a test tells it to.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use saga_core::memory::MemoryTransport;
use saga_core::store::Message;
use saga_core::transport::{
    Delivery, Incoming, Settlement, Subscription, Transport, TransportError, TransportErrorKind,
};

/// Fails to send, sends all twice, or says of what it delivers that it was delivered before, while it is told to.
#[derive(Debug, Clone)]
pub(crate) struct Failing {
    pub(crate) inner: MemoryTransport,
    pub(crate) fails: Arc<AtomicBool>,
    pub(crate) doubles: Arc<AtomicBool>,
    pub(crate) repeats: Arc<AtomicBool>,
}

struct Repeating {
    inner: Box<dyn Incoming>,
    repeats: Arc<AtomicBool>,
}

#[async_trait]
impl Incoming for Repeating {
    async fn receive(&mut self, limit: usize) -> Result<Vec<Delivery>, TransportError> {
        let mut deliveries = self.inner.receive(limit).await?;
        for delivery in &mut deliveries {
            delivery.redelivered |= self.repeats.load(Ordering::Acquire);
        }
        Ok(deliveries)
    }

    async fn settle(&mut self, settled: &[(u64, Settlement)]) -> Result<(), TransportError> {
        self.inner.settle(settled).await
    }
}

#[async_trait]
impl Transport for Failing {
    fn name(&self) -> &'static str {
        "failing"
    }

    async fn publish(&self, messages: Vec<Message>) -> Vec<Result<(), TransportError>> {
        if self.fails.load(Ordering::Acquire) {
            let refused = || TransportError::new(TransportErrorKind::Unavailable, "publish", "the cable is cut");
            return messages.iter().map(|_| Err(refused())).collect();
        }
        if self.doubles.load(Ordering::Acquire) {
            self.inner.publish(messages.clone()).await;
        }
        self.inner.publish(messages).await
    }

    async fn subscribe(&self, subscription: Subscription) -> Result<Box<dyn Incoming>, TransportError> {
        let inner = self.inner.subscribe(subscription).await?;
        Ok(Box::new(Repeating { inner, repeats: Arc::clone(&self.repeats) }))
    }
}
