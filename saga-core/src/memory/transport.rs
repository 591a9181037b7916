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

/// How often a message may be rejected and is still delivered again, unless the transport was made with another limit.
pub const REJECTIONS_MAX: u32 = 20;
/// Why a message was given up.
const REJECTED: &str = "rejected";

/// A transport inside the process. A clone is the same transport.
///
/// A message is confirmed when every subscription of its topic has accepted it, or at once where there is none: so an
/// outbox keeps it until it was taken, and nothing that was confirmed is lost with the process. What is for one receiver
/// is taken only where there was a subscription of its topic. A message that a subscription rejected too often is given
/// up, and [`given_up`](Self::given_up) keeps it: whoever receives the dead letters of that subscription takes it, and
/// where nobody ever did, its publisher is told that it is refused.
#[derive(Debug, Clone)]
pub struct MemoryTransport {
    broker: Arc<Mutex<Broker>>,
    rejections_max: u32,
}

/// A message that was rejected too often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLettered {
    /// The message.
    pub message: Message,
    /// How often it was rejected.
    pub rejections: u32,
}

#[derive(Debug, Default)]
struct Broker {
    queues: BTreeMap<String, Queue>,
    /// What was given up under each name whose dead letters were ever received.
    dead_letters: BTreeMap<String, Queue>,
    dead_lettered: Vec<DeadLettered>,
    sent: u64,
    receivers: u64,
}

/// What became of a message that was handed over.
#[derive(Debug, Clone, Copy)]
enum Sent {
    OnItsWay,
    Nowhere,
    Nacked,
}

struct Receiver {
    transport: MemoryTransport,
    name: String,
    /// Whether it receives what was given up under the name.
    is_of_dead_letters: bool,
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
    pub fn dead_lettered(&self) -> Vec<DeadLettered> {
        self.lock().dead_lettered.clone()
    }

    /// Lets at most so many messages lie in the queue of this name, unsettled ones among them; what comes beyond them is
    /// nacked. There is no limit until one is set.
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
            Sent::Nowhere => error(TransportErrorKind::NoRoute, "there is no subscription of its topic"),
            Sent::Nacked => error(TransportErrorKind::Nacked, "a queue of its topic is full"),
            Sent::OnItsWay if refused.contains(&index) => {
                error(TransportErrorKind::Refused, "a subscription rejected the message too often")
            }
            Sent::OnItsWay => Ok(()),
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
    /// Puts the messages into the queue of every subscription of their topics, and says where each of them is.
    fn send(&mut self, messages: Vec<Message>) -> (Arc<Call>, Vec<Sent>) {
        // Open until all are on their way.
        let call = Call::new(1);
        let mut sent = Vec::with_capacity(messages.len());
        for (index, message) in messages.into_iter().enumerate() {
            self.sent += 1;
            let message = Arc::new(message);
            let queues = || self.queues.values().filter(|queue| queue.topics.contains(&message.topic));
            sent.push(match queues().count() {
                0 if message.kind != MessageKind::Event => Sent::Nowhere,
                _ if queues().any(Queue::is_full) => Sent::Nacked,
                count => {
                    call.opens(count);
                    Sent::OnItsWay
                }
            });
            if !matches!(sent.last(), Some(Sent::OnItsWay)) {
                continue;
            }
            for queue in self.queues.values_mut().filter(|queue| queue.topics.contains(&message.topic)) {
                queue.put(self.sent, Item::new(Arc::clone(&message), Arc::clone(&call), index));
            }
        }
        call.settle(sent.len(), true);
        (call, sent)
    }

    /// What was rejected too often goes to whoever receives the dead letters of the name.
    fn give_up(&mut self, name: &str, tag: u64, mut item: Item) {
        let (message, rejections) = (Message::clone(&item.message), item.rejections);
        let (id, topic) = (message.id, &message.topic);
        log::error!(%id, topic, rejections, subscription = name, "a message was given up");
        self.dead_lettered.push(DeadLettered { message, rejections });
        let Some(dead_letters) = self.dead_letters.get_mut(name) else {
            return item.call.settle(item.index, false);
        };
        item.death =
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
        // A subscription's name is remembered for ever, so the entry is there.
        act(queues.entry(self.name.clone()).or_default())
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
                Ok(Some(item)) => self.transport.lock().give_up(&self.name, *tag, item),
                Err(error) => outcome = Err(error),
            }
        }
        outcome
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.with_queue(|queue| queue.forget(self.id));
    }
}
