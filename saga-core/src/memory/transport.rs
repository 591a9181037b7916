use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use super::queue::{Call, Item, Queue};
use crate::transport::{
    Delivery, Incoming, Message, Settlement, Subscription, Transport, TransportError, TransportErrorKind,
};

/// How often a message may be rejected and is still delivered again, unless the transport was made with another limit.
pub const REJECTIONS_MAX: u32 = 20;

/// A transport inside the process. A clone is the same transport.
///
/// A message is confirmed when every subscription of its topic has accepted it, or at once where there is none: so an
/// outbox keeps it until it was taken, and nothing that was confirmed is lost with the process. One that a subscription
/// rejected too often is given up: its publisher is told that it is refused, and [`given_up`](Self::given_up) keeps it.
#[derive(Debug, Clone)]
pub struct MemoryTransport {
    broker: Arc<Mutex<Broker>>,
    rejections_max: u32,
}

/// A message that was rejected too often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenUp {
    /// The message.
    pub message: Message,
    /// How often it was rejected.
    pub rejections: u32,
}

#[derive(Debug, Default)]
struct Broker {
    queues: BTreeMap<String, Queue>,
    given_up: Vec<GivenUp>,
    sent: u64,
    receivers: u64,
}

struct Receiver {
    transport: MemoryTransport,
    name: String,
    id: u64,
    prefetch: usize,
}

impl MemoryTransport {
    /// A transport without subscriptions. It needs no tokio runtime.
    pub fn new() -> Self {
        Self { broker: Arc::default(), rejections_max: REJECTIONS_MAX }
    }

    /// The same transport, delivering a rejected message again at most so often.
    #[must_use]
    pub fn with_rejections_max(mut self, rejections_max: u32) -> Self {
        self.rejections_max = rejections_max;
        self
    }

    /// What was given up, oldest first.
    pub fn given_up(&self) -> Vec<GivenUp> {
        self.lock().given_up.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Broker> {
        self.broker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for MemoryTransport {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Transport for MemoryTransport {
    fn name(&self) -> &'static str {
        "memory"
    }

    async fn publish(&self, messages: Vec<Message>) -> Vec<Result<(), TransportError>> {
        let count = messages.len();
        let call = self.lock().send(messages);
        let refused = call.settled().await;
        let answer = |index| {
            if refused.contains(&index) {
                let detail = "a subscription rejected the message too often";
                return Err(TransportError::new(TransportErrorKind::Refused, "publish", detail));
            }
            Ok(())
        };
        (0..count).map(answer).collect()
    }

    async fn subscribe(&self, subscription: Subscription) -> Result<Box<dyn Incoming>, TransportError> {
        let mut broker = self.lock();
        broker.receivers += 1;
        let id = broker.receivers;
        let queue = broker.queues.entry(subscription.name.clone()).or_default();
        queue.topics.extend(subscription.topics);
        let prefetch = subscription.prefetch.max(1);
        Ok(Box::new(Receiver { transport: self.clone(), name: subscription.name, id, prefetch }))
    }
}

impl Broker {
    /// Puts the messages into the queue of every subscription of their topics.
    fn send(&mut self, messages: Vec<Message>) -> Arc<Call> {
        let takes =
            |message: &Message| self.queues.values().filter(|queue| queue.topics.contains(&message.topic)).count();
        let call = Call::new(messages.iter().map(takes).sum());
        for (index, message) in messages.into_iter().enumerate() {
            self.sent += 1;
            let message = Arc::new(message);
            for queue in self.queues.values_mut().filter(|queue| queue.topics.contains(&message.topic)) {
                let item = Item {
                    message: Arc::clone(&message),
                    call: Arc::clone(&call),
                    index,
                    rejections: 0,
                    redelivered: false,
                };
                queue.waiting.insert(self.sent, item);
                queue.news.notify_waiters();
            }
        }
        call
    }
}

impl Receiver {
    fn with_queue<T>(&self, act: impl FnOnce(&mut Queue) -> T) -> T {
        // A subscription's name is remembered for ever, so the entry is there.
        act(self.transport.lock().queues.entry(self.name.clone()).or_default())
    }
}

#[async_trait]
impl Incoming for Receiver {
    async fn receive(&mut self, limit: usize) -> Result<Vec<Delivery>, TransportError> {
        let news = self.with_queue(|queue| Arc::clone(&queue.news));
        loop {
            let mut some = pin!(news.notified());
            // Registered before the look, so that what is sent in between is not missed. All receivers of a name are
            // woken, since the one that was woken alone could be the one without room.
            some.as_mut().enable();
            let deliveries = self.with_queue(|queue| queue.take(self.id, limit.max(1), self.prefetch));
            if !deliveries.is_empty() {
                return Ok(deliveries);
            }
            some.await;
        }
    }

    async fn settle(&mut self, settled: &[(u64, Settlement)]) -> Result<(), TransportError> {
        let rejections_max = self.transport.rejections_max;
        let mut outcome = Ok(());
        for (tag, settlement) in settled {
            let answer = self.with_queue(|queue| match settlement {
                Settlement::Accept => queue.accept(self.id, *tag).map(|()| None),
                Settlement::Reject => queue.reject(self.id, *tag, rejections_max),
            });
            match answer {
                Ok(None) => {}
                Ok(Some(given_up)) => self.give_up(given_up),
                Err(error) => outcome = Err(error),
            }
        }
        outcome
    }
}

impl Receiver {
    fn give_up(&self, given_up: GivenUp) {
        let (id, topic, rejections) = (given_up.message.id, &given_up.message.topic, given_up.rejections);
        tracing::error!(%id, %topic, rejections, subscription = %self.name, "a message was given up");
        self.transport.lock().given_up.push(given_up);
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.with_queue(|queue| queue.forget(self.id));
    }
}
