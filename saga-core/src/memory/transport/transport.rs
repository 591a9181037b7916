//! The transport in memory.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use super::transport_queue::{Call, Item, Queue};
use crate::log;
use crate::transport::{
    DeadLetterInfo, Delivery, Incoming, Message, MessageKind, Settlement, Subscription, Transport, TransportError,
    TransportErrorKind,
};

/// How often a message is delivered again after a rejection, unless the transport is made with another limit.
const REJECTIONS_MAX: u32 = 20;
/// The reason of a dead letter.
const REJECTED: &str = "rejected";

/// A transport inside the process. A clone is the same transport.
///
/// A message is confirmed when every subscription of its topic has accepted it, or at once where there is none. So the
/// outbox keeps a message until it is accepted, and nothing confirmed is lost with the process. A message for one
/// receiver is accepted only where there was a subscription of its topic. A message that a subscription rejected too
/// often is dead-lettered, and [`dead_lettered`](Self::dead_lettered) keeps it: a receiver of the dead letters of that
/// subscription gets it. Where there never was such a receiver, its publisher gets the error `Refused`.
#[derive(Debug, Clone)]
pub struct MemoryTransport {
    broker: Arc<Mutex<Broker>>,
    rejections_max: u32,
}

#[derive(Debug, Default)]
struct Broker {
    queues: BTreeMap<String, Queue>,
    /// The dead letters under each name whose dead letters were ever received.
    dead_letters: BTreeMap<String, Queue>,
    dead_lettered: Vec<Message>,
    sent: u64,
    receivers: u64,
}

/// What happened to a message that was published.
#[derive(Debug, Clone, Copy)]
enum Routed {
    Enqueued,
    NoRoute,
    Nacked,
}

struct Receiver {
    transport: MemoryTransport,
    name: String,
    /// Whether it receives the dead letters of the name.
    is_of_dead_letters: bool,
    id: u64,
    prefetch: usize,
}

impl MemoryTransport {
    /// A transport without subscriptions. It needs no tokio runtime.
    pub fn new() -> Self {
        Self { broker: Arc::default(), rejections_max: REJECTIONS_MAX }
    }

    /// The same transport with another limit of deliveries after a rejection than 20.
    #[must_use]
    pub fn with_rejections_max(mut self, rejections_max: u32) -> Self {
        self.rejections_max = rejections_max;
        self
    }

    /// The dead-lettered messages, oldest first.
    pub fn dead_lettered(&self) -> Vec<Message> {
        self.lock().dead_lettered.clone()
    }

    /// Limits the messages in the queue of this name, unsettled ones included; further messages are nacked. There is no
    /// limit until one is set.
    pub fn limit_queue(&self, subscription: &str, messages: usize) {
        self.lock().queues.entry(subscription.to_owned()).or_default().messages_max = Some(messages);
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
        let (call, sent) = self.lock().send(messages);
        let refused = call.settled().await;
        let error = |kind, detail| Err(TransportError::new(kind, "publish", detail));
        let answer = |(index, sent)| match sent {
            Routed::NoRoute => error(TransportErrorKind::NoRoute, "there is no subscription of its topic"),
            Routed::Nacked => error(TransportErrorKind::Nacked, "a queue of its topic is full"),
            Routed::Enqueued if refused.contains(&index) => {
                error(TransportErrorKind::Refused, "a subscription rejected the message too often")
            }
            Routed::Enqueued => Ok(()),
        };
        sent.into_iter().enumerate().map(answer).collect()
    }

    async fn subscribe(&self, subscription: Subscription) -> Result<Box<dyn Incoming>, TransportError> {
        let mut broker = self.lock();
        let queue = broker.queues.entry(subscription.name.clone()).or_default();
        queue.topics.extend(subscription.topics);
        Ok(Box::new(Receiver::new(self, &mut broker, subscription.name, subscription.prefetch, false)))
    }

    async fn dead_letters(
        &self,
        subscription: &str,
        prefetch: usize,
    ) -> Result<Option<Box<dyn Incoming>>, TransportError> {
        let mut broker = self.lock();
        broker.dead_letters.entry(subscription.to_owned()).or_default();
        let receiver = Receiver::new(self, &mut broker, subscription.to_owned(), prefetch, true);
        Ok(Some(Box::new(receiver)))
    }
}

impl Broker {
    /// Puts the messages into the queue of every subscription of their topics, and answers what happened to each.
    fn send(&mut self, messages: Vec<Message>) -> (Arc<Call>, Vec<Routed>) {
        // Open until all messages are in their queues.
        let call = Call::new(1);
        let mut sent = Vec::with_capacity(messages.len());
        for (index, message) in messages.into_iter().enumerate() {
            self.sent += 1;
            let message = Arc::new(message);
            let queues = || self.queues.values().filter(|queue| queue.topics.contains(&message.topic));
            sent.push(match queues().count() {
                0 if message.kind != MessageKind::Event => Routed::NoRoute,
                _ if queues().any(Queue::is_full) => Routed::Nacked,
                count => {
                    call.add_open(count);
                    Routed::Enqueued
                }
            });
            if !matches!(sent.last(), Some(Routed::Enqueued)) {
                continue;
            }
            for queue in self.queues.values_mut().filter(|queue| queue.topics.contains(&message.topic)) {
                queue.put(self.sent, Item::new(Arc::clone(&message), Arc::clone(&call), index));
            }
        }
        call.settle(sent.len(), true);
        (call, sent)
    }

    /// Dead-letters a message that was rejected too often.
    fn dead_letter(&mut self, name: &str, tag: u64, mut item: Item) {
        let (message, rejections) = (Message::clone(&item.message), item.rejections);
        let (message_id, topic) = (message.id, &message.topic);
        log::error!(%message_id, topic, queue = name, count = rejections, "delivery limit reached");
        self.dead_lettered.push(message);
        let Some(dead_letters) = self.dead_letters.get_mut(name) else {
            return item.call.settle(item.index, false);
        };
        item.dead_letter =
            Some(DeadLetterInfo { queue: name.to_owned(), reason: REJECTED.to_owned(), deliveries: rejections });
        item.redelivered = false;
        dead_letters.put(tag, item);
    }
}

impl Receiver {
    fn new(
        transport: &MemoryTransport,
        broker: &mut Broker,
        name: String,
        prefetch: usize,
        is_of_dead_letters: bool,
    ) -> Self {
        broker.receivers += 1;
        Self { transport: transport.clone(), name, is_of_dead_letters, id: broker.receivers, prefetch: prefetch.max(1) }
    }

    fn with_queue<T>(&self, act: impl FnOnce(&mut Queue) -> T) -> T {
        let mut broker = self.transport.lock();
        let queues = if self.is_of_dead_letters { &mut broker.dead_letters } else { &mut broker.queues };
        // The name of a subscription is never forgotten, so the entry exists.
        act(queues.entry(self.name.clone()).or_default())
    }
}

#[async_trait]
impl Incoming for Receiver {
    async fn receive(&mut self, limit: usize) -> Result<Vec<Delivery>, TransportError> {
        let news = self.with_queue(|queue| Arc::clone(&queue.arrived));
        loop {
            let mut some = pin!(news.notified());
            // Registered before the check, so that a message in between is not missed. All receivers of a name are
            // woken, because a single one might have no room.
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
        for (tag, settlement) in settled {
            let given_up = self.with_queue(|queue| match settlement {
                Settlement::Accept => {
                    queue.accept(self.id, *tag);
                    None
                }
                Settlement::Reject => queue.reject(self.id, *tag, rejections_max),
            });
            if let Some(item) = given_up {
                self.transport.lock().dead_letter(&self.name, *tag, item);
            }
        }
        Ok(())
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.with_queue(|queue| queue.forget(self.id));
    }
}
