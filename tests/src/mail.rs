use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use saga_core::transport::{Incoming, Message, Subscription, Transport, TransportError, TransportErrorKind};

/// A transport that keeps what it accepted, and fails as it was told. A clone is the same transport.
#[derive(Clone, Default)]
pub struct Mail {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    accepted: Vec<Message>,
    offered: Vec<Message>,
    /// What becomes of the next messages, whoever's they are.
    failures: VecDeque<TransportErrorKind>,
    /// Messages of these ordering keys are refused.
    refused: BTreeSet<String>,
}

impl Mail {
    /// A transport that accepts everything.
    pub fn new() -> Self {
        Self::default()
    }

    /// The next messages fail in these ways. One whose answer is unknown is accepted all the same.
    pub fn fail_next(&self, kinds: impl IntoIterator<Item = TransportErrorKind>) {
        self.lock().failures.extend(kinds);
    }

    /// Refuses what has this ordering key.
    pub fn refuse(&self, key: &str) {
        self.lock().refused.insert(key.to_owned());
    }

    /// Accepts it again.
    pub fn accept(&self, key: &str) {
        self.lock().refused.remove(key);
    }

    /// What was accepted, in order.
    pub fn accepted(&self) -> Vec<Message> {
        self.lock().accepted.clone()
    }

    /// The payloads that were accepted with this ordering key, each once, in the order of their first acceptance.
    pub fn first_accepted(&self, key: &str) -> Vec<String> {
        let mut seen = Vec::new();
        for message in self.lock().accepted.iter().filter(|message| message.key == key) {
            let payload = String::from_utf8_lossy(&message.payload).into_owned();
            if !seen.contains(&payload) {
                seen.push(payload);
            }
        }
        seen
    }

    /// What was offered, in order.
    pub fn offered(&self) -> Vec<Message> {
        self.lock().offered.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn take(&mut self, message: Message) -> Result<(), TransportError> {
        let failed = |kind| Err(TransportError::new(kind, "publish", "as planned"));
        self.offered.push(message.clone());
        if self.refused.contains(&message.key) {
            return failed(TransportErrorKind::Refused);
        }
        match self.failures.pop_front() {
            None => self.accepted.push(message),
            Some(TransportErrorKind::Unknown) => {
                self.accepted.push(message);
                return failed(TransportErrorKind::Unknown);
            }
            Some(kind) => return failed(kind),
        }
        Ok(())
    }
}

#[async_trait]
impl Transport for Mail {
    fn name(&self) -> &'static str {
        "mail"
    }

    async fn publish(&self, messages: Vec<Message>) -> Vec<Result<(), TransportError>> {
        let mut inner = self.lock();
        messages.into_iter().map(|message| inner.take(message)).collect()
    }

    async fn subscribe(&self, _subscription: Subscription) -> Result<Box<dyn Incoming>, TransportError> {
        Err(TransportError::new(TransportErrorKind::Refused, "subscribe", "this transport only sends"))
    }
}
