//! A transport with moods.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use saga_core::memory::MemoryTransport;
use saga_core::transport::{
    Delivery, Incoming, Message, Settlement, Subscription, Transport, TransportError, TransportErrorKind,
};

/// How a transport is at the moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mood {
    /// A message with one of these contents makes the call panic.
    pub(crate) panics_at: Vec<Vec<u8>>,
    /// So many of the next calls that subscribe or receive panic, in turns.
    pub(crate) panics_in_receive: u32,
    /// So many of the next calls that publish get no answer.
    pub(crate) unanswered: u32,
    /// Nothing can be sent.
    pub(crate) is_away: bool,
    /// How long it takes until that is said.
    pub(crate) away_after: Duration,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Moody {
    pub(crate) inner: MemoryTransport,
    mood: Arc<Mutex<Mood>>,
    calls: Arc<AtomicUsize>,
}

struct MoodyIncoming {
    inner: Box<dyn Incoming>,
    moody: Moody,
}

impl Moody {
    pub(crate) fn around(inner: MemoryTransport) -> Self {
        Self { inner, ..Self::default() }
    }

    pub(crate) fn set(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    /// How often it was asked to send.
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    pub(crate) fn mood(&self) -> Mood {
        self.mood.lock().unwrap().clone()
    }

    fn is_unanswered(&self) -> bool {
        let mut mood = self.mood.lock().unwrap();
        let is_unanswered = mood.unanswered > 0;
        mood.unanswered -= u32::from(is_unanswered);
        is_unanswered
    }

    fn may_panic(&self, receives: bool) {
        let left = {
            let mut mood = self.mood.lock().unwrap();
            // An odd number makes a subscription fail, an even one what it brings.
            let is_hit = mood.panics_in_receive > 0 && mood.panics_in_receive.is_multiple_of(2) == receives;
            mood.panics_in_receive -= u32::from(is_hit);
            is_hit.then_some(mood.panics_in_receive)
        };
        assert!(left.is_none(), "{left:?} panics to go");
    }
}

#[async_trait]
impl Transport for Moody {
    fn name(&self) -> &'static str {
        "moody"
    }

    async fn publish(&self, messages: Vec<Message>) -> Vec<Result<(), TransportError>> {
        let mood = self.mood();
        self.calls.fetch_add(1, Ordering::Relaxed);
        if mood.is_away {
            tokio::time::sleep(mood.away_after).await;
            let away = || Err(TransportError::new(TransportErrorKind::Unavailable, "publish", "the broker is away"));
            return messages.iter().map(|_| away()).collect();
        }
        if self.is_unanswered() {
            let unknown = || Err(TransportError::new(TransportErrorKind::Unknown, "publish", "the connection broke"));
            return messages.iter().map(|_| unknown()).collect();
        }
        for message in &messages {
            let text = String::from_utf8_lossy(&message.payload);
            assert!(!mood.panics_at.contains(&message.payload), "at {text}");
        }
        self.inner.publish(messages).await
    }

    async fn reachable(&self) -> Result<(), TransportError> {
        let away = || TransportError::new(TransportErrorKind::Unavailable, "publish", "the broker is away");
        if self.mood().is_away { Err(away()) } else { Ok(()) }
    }

    async fn subscribe(&self, subscription: Subscription) -> Result<Box<dyn Incoming>, TransportError> {
        self.may_panic(false);
        let inner = self.inner.subscribe(subscription).await?;
        Ok(Box::new(MoodyIncoming { inner, moody: self.clone() }))
    }

    async fn dead_letters(
        &self,
        subscription: &str,
        prefetch: usize,
    ) -> Result<Option<Box<dyn Incoming>>, TransportError> {
        self.inner.dead_letters(subscription, prefetch).await
    }
}

#[async_trait]
impl Incoming for MoodyIncoming {
    async fn receive(&mut self, limit: usize) -> Result<Vec<Delivery>, TransportError> {
        self.moody.may_panic(true);
        self.inner.receive(limit).await
    }

    async fn settle(&mut self, settled: &[(u64, Settlement)]) -> Result<(), TransportError> {
        self.inner.settle(settled).await
    }
}
