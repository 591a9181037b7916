use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

use super::{Message, Unreadable};

/// A transport.
///
/// # Contract
/// - `T-PUB-1` [`publish`](Transport::publish) answers one result per message, in their order. `Ok` means that the transport is responsible for the message from now on: it will be delivered at least once to every subscription that existed.
/// - `T-PUB-2` A message that could not be accepted is an error of that message only.
/// - `T-PUB-3` Messages with one key that are published one after another's confirmation are first delivered in that order.
/// - `T-PUB-4` The same id may be published again; it is delivered again. Receivers detect duplicates by the id.
/// - `T-PUB-5` A message of any kind but event is for one receiver. Where there never was a subscription of its topic it is answered as [`NoRoute`](TransportErrorKind::NoRoute), and is not delivered later.
/// - `T-PUB-6` Where a queue is full, each message for it is answered as [`Nacked`](TransportErrorKind::Nacked). Messages for other queues are still accepted, and later ones for the full queue too once there is room. [`Unavailable`](TransportErrorKind::Unavailable) and [`Closed`](TransportErrorKind::Closed) are about the transport: they are never the answer to one message while another would be accepted.
/// - `T-PUB-7` [`reachable`](Transport::reachable) answers at once, without sending a message, and fails only while no message would be accepted.
/// - `T-SUB-1` Every subscription name gets every message of its topics; of several subscribers with one name, each message goes to one.
/// - `T-SUB-2` A message that was delivered and neither accepted nor rejected when its receiver is dropped is delivered again. Where the transport remembers a place in a log, what was accepted last, or behind such a message, may be delivered again too, to another process.
/// - `T-SUB-3` A rejected message is delivered again, at most as often as the transport's limit. Then it is dead-lettered, and the transport logs it. Where the receiver counts the rejections, the count may begin again with another receiver.
/// - `T-SUB-4` At most `prefetch` messages of a subscription are delivered and unsettled at a time. The messages with one key may be held back until those before them are settled.
/// - `T-SUB-5` The id, the kind, a tenant, a key, a topic, an event type, a payload, the time of the commit and every header arrive as they were sent, byte for byte. A malformed message from another sender is delivered as [`Unreadable`](super::Unreadable), which says what is wrong with it.
/// - `T-SUB-6` A delivery names a [`user`](Delivery::user) only where the transport itself has checked that the sender is that user; a claim of the sender is not enough.
/// - `T-SUB-7` A tag that is not its receiver's, or no longer, is settled without an effect and without an error; so is one that is settled already. A message whose tag was lost is delivered again.
/// - `T-SUB-8` [`redelivered`](Delivery::redelivered) is true of each message that may have been delivered before, also to a receiver that is gone and in another process. It may be true without a cause.
/// - `T-DEAD-1` [`dead_letters`](Transport::dead_letters) delivers the dead letters of that subscription's name, and nothing else: as they were sent, with their [`DeadLetterInfo`]. A letter that is not accepted there, or is rejected, is delivered again.
#[async_trait]
pub trait Transport: Send + Sync + 'static {
    /// The transport's name, for messages.
    fn name(&self) -> &'static str;

    /// Sends messages and waits until each is accepted or refused.
    async fn publish(&self, messages: Vec<Message>) -> Vec<Result<(), TransportError>>;

    /// The longest time after which a message that was sent may be delivered, or delivered again; `None` if there is no end.
    /// A runtime whose message ids are forgotten earlier does not start.
    fn redelivers_within(&self) -> Option<Duration> {
        None
    }

    /// The longest payload that a message may have, in bytes; `None` if there is no limit. A runtime whose undos may be
    /// longer does not start.
    fn payload_bytes_max(&self) -> Option<usize> {
        None
    }

    /// Whether messages can be sent, as far as the transport knows without sending one. A process that cannot send
    /// leaves the outbox to other processes.
    async fn reachable(&self) -> Result<(), TransportError> {
        Ok(())
    }

    /// Receives messages that are sent from now on, and earlier messages under this name that are not settled.
    async fn subscribe(&self, subscription: Subscription) -> Result<Box<dyn Incoming>, TransportError>;

    /// Receives the dead letters of the subscription of this name. `None` where the transport has no dead letters.
    async fn dead_letters(
        &self,
        subscription: &str,
        prefetch: usize,
    ) -> Result<Option<Box<dyn Incoming>>, TransportError> {
        let _ = (subscription, prefetch);
        Ok(None)
    }
}

/// A subscription.
#[derive(Debug, Clone)]
pub struct Subscription {
    /// The name under which the transport remembers which messages are settled.
    pub name: String,
    /// The topics.
    pub topics: Vec<String>,
    /// The most messages that are delivered and not settled.
    pub prefetch: usize,
}

/// The receiving end of a subscription.
#[async_trait]
pub trait Incoming: Send {
    /// The next messages: at least one, at most `limit`. The call waits until there is one.
    async fn receive(&mut self, limit: usize) -> Result<Vec<Delivery>, TransportError>;

    /// Settles messages by their tags. Tags that are not this receiver's, or no longer, are ignored.
    async fn settle(&mut self, settled: &[(u64, Settlement)]) -> Result<(), TransportError>;
}

/// A delivered message.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The tag to settle it by; it is valid for its receiver only.
    pub tag: u64,
    /// Whether it may have been delivered before. It may be true without a cause.
    pub redelivered: bool,
    /// The message; or the malformed content, which is settled in the same way.
    pub message: Result<Message, Unreadable>,
    /// For a dead letter: why the transport stopped delivering it.
    pub dead_letter: Option<DeadLetterInfo>,
    /// The authenticated user of the sender, where the transport checks that.
    pub user: Option<String>,
}

/// Why a transport stopped delivering a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterInfo {
    /// The queue that it was in, by the transport's name.
    pub queue: String,
    /// The reason, in the transport's word, such as `delivery_limit`, `rejected` or `expired`.
    pub reason: String,
    /// How often it was delivered, as far as the transport knows: at least 1.
    pub deliveries: u32,
}

/// How a delivered message is settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settlement {
    /// It was stored or handled, and is not delivered again, but for what `T-SUB-2` says of a log.
    Accept,
    /// It could not be handled, and may be delivered again, to any receiver.
    Reject,
}

/// The kind of a transport error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TransportErrorKind {
    /// It cannot be reached, or the connection broke: no message can be sent at present.
    Unavailable,
    /// No answer arrived in time: the message may have been accepted.
    Unknown,
    /// It works and could not accept this message: the queue is full, or cannot write at present. Other messages may be
    /// accepted.
    Nacked,
    /// The message will never be accepted in this form.
    Refused,
    /// The message has no receiver at present: its subscription never existed, or was deleted.
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

    /// The kind of the error.
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
