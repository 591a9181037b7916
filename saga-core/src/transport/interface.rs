use std::fmt;

use async_trait::async_trait;

use super::{Message, Unreadable};

/// A transport.
///
/// # Contract
/// - `T-PUB-1` [`publish`](Transport::publish) answers one result per message, in their order. `Ok` means that the transport answers for the message from now on: it will be delivered at least once to every subscription that there was.
/// - `T-PUB-2` A message that could not be accepted is an error of that message only.
/// - `T-PUB-3` Messages with one key that are published one after the other's confirmation are delivered first in that order.
/// - `T-PUB-4` The same id may be published again; it is delivered again. Receivers tell duplicates by the id.
/// - `T-PUB-5` A message that is no event is for one receiver. Where there never was a subscription of its topic it is answered as [`NoRoute`](TransportErrorKind::NoRoute), and is not delivered later.
/// - `T-PUB-6` Where a queue takes no more at present, each message for it is answered as [`Nacked`](TransportErrorKind::Nacked), messages for other queues are taken all the same, and later ones for it too once there is room. [`Unavailable`](TransportErrorKind::Unavailable) and [`Closed`](TransportErrorKind::Closed) are about the transport: they are never the answer to one message while another would be taken.
/// - `T-PUB-7` [`reachable`](Transport::reachable) answers at once, without a message, and fails only while no message would be taken.
/// - `T-SUB-1` Every subscription name gets every message of its topics; of several subscribers with one name each message goes to one.
/// - `T-SUB-2` What was delivered and neither accepted nor rejected when its receiver is dropped is delivered again.
/// - `T-SUB-3` A rejected message is delivered again, at most as often as the transport's limit, and then given up aloud.
/// - `T-SUB-4` At most `prefetch` messages of a subscription are delivered and unsettled at a time.
/// - `T-SUB-5` The id, the kind, a tenant, a key, a topic, an event type, a payload, the time of the commit and every header arrive as they were sent, byte for byte. What others sent and what is no message of this protocol is delivered as [`Unreadable`](super::Unreadable), and says what is wrong with it.
/// - `T-SUB-6` A delivery names a [`user`](Delivery::user) only where the transport itself has checked that the sender is that user; never because the sender says so.
/// - `T-DEAD-1` [`dead_letters`](Transport::dead_letters) delivers what was given up under that subscription's name, and nothing else: as it was sent, with its [`Death`]. What is not accepted there, or rejected, comes again.
#[async_trait]
pub trait Transport: Send + Sync + 'static {
    /// The transport's name, for messages.
    fn name(&self) -> &'static str;

    /// Sends messages and waits until each was accepted or refused.
    async fn publish(&self, messages: Vec<Message>) -> Vec<Result<(), TransportError>>;

    /// Whether messages can be sent, as far as is known without sending one. A process that cannot send leaves what waits
    /// to others.
    async fn reachable(&self) -> Result<(), TransportError> {
        Ok(())
    }

    /// Receives what is sent from now on, and what was sent under this name and not settled.
    async fn subscribe(&self, subscription: Subscription) -> Result<Box<dyn Incoming>, TransportError>;

    /// Receives what the transport gave up of the subscription of this name; nothing where it gives nothing up.
    async fn dead_letters(
        &self,
        subscription: &str,
        prefetch: usize,
    ) -> Result<Option<Box<dyn Incoming>>, TransportError> {
        let _ = (subscription, prefetch);
        Ok(None)
    }
}

/// What to receive.
#[derive(Debug, Clone)]
pub struct Subscription {
    /// The name under which the transport remembers what was settled.
    pub name: String,
    /// The topics.
    pub topics: Vec<String>,
    /// At most so many messages are delivered and not settled.
    pub prefetch: usize,
}

/// The receiving end of a subscription.
#[async_trait]
pub trait Incoming: Send {
    /// The next messages: at least one, at most `limit`. It waits until there is one.
    async fn receive(&mut self, limit: usize) -> Result<Vec<Delivery>, TransportError>;

    /// Says what became of messages, by their tags.
    async fn settle(&mut self, settled: &[(u64, Settlement)]) -> Result<(), TransportError>;
}

/// A delivered message.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// What to settle it by; it means nothing outside its receiver.
    pub tag: u64,
    /// Whether it may have been delivered before.
    pub redelivered: bool,
    /// The message; or what came instead of one, which is settled like one.
    pub message: Result<Message, Unreadable>,
    /// Of a dead letter: why the transport gave it up.
    pub dead_letter: Option<DeadLetterInfo>,
    /// The user as which its sender was known to the transport, where the transport checks that.
    pub user: Option<String>,
}

/// Why a transport gave a message up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterInfo {
    /// The queue that it lay in, by the transport's own name for it.
    pub queue: String,
    /// The reason, in the transport's own word, such as `delivery_limit`, `rejected` or `expired`.
    pub reason: String,
    /// How often it was delivered, as far as the transport can tell: at least 1.
    pub deliveries: u32,
}

/// What became of a delivered message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settlement {
    /// It was stored, or handled: it does not come again.
    Accept,
    /// It could not be taken: it may come again, to anybody.
    Reject,
}

/// What kind of thing went wrong in a transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TransportErrorKind {
    /// It cannot be reached, or the connection broke: no message can be sent at present.
    Unavailable,
    /// No answer came in time: the message may have been accepted.
    Unknown,
    /// It works and could not take this message: its queue is full, or cannot write at present. Other messages may be taken.
    Nacked,
    /// The message will never be accepted as it is.
    Refused,
    /// Nobody takes the message at present: its receiver has never been there, or is gone for good.
    NoRoute,
    /// The transport was closed.
    Closed,
}

/// A transport call that failed.
#[derive(Debug)]
pub struct TransportError {
    kind: TransportErrorKind,
    operation: &'static str,
    detail: String,
}

impl TransportError {
    /// An error of this kind in this operation.
    pub fn new(kind: TransportErrorKind, operation: &'static str, detail: impl Into<String>) -> Self {
        Self { kind, operation, detail: detail.into() }
    }

    /// What kind of thing went wrong.
    pub fn kind(&self) -> TransportErrorKind {
        self.kind
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.operation, self.detail)
    }
}

impl std::error::Error for TransportError {}
