use std::fmt;
use std::time::Duration;

use saga_core::transport::{TransportError, TransportErrorKind};

use crate::hosts::Turn;
use crate::names::Names;

/// How the transport treats exchanges and queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Topology {
    /// The transport declares what it needs, each time it connects.
    #[default]
    Declare,
    /// The transport only checks that they exist, and names a missing one. It cannot check bindings.
    Check,
    /// The transport neither declares nor checks them.
    None,
}

/// The outcome of an event that no queue accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unrouted {
    /// It counts as sent: an event may have no subscribers.
    #[default]
    Accept,
    /// It is refused: if subscribers are expected, a queue or a binding is missing.
    Refuse,
}

/// The options of a connection, and its limits.
///
/// ```
/// use std::time::Duration;
///
/// use saga_amqp::{AmqpOptions, Topology, Unrouted};
///
/// let options = AmqpOptions::new("amqp://shop:secret@broker/shop")
///     .prefix("shop.")
///     .topology(Topology::Check)
///     .unrouted(Unrouted::Refuse)
///     .confirm_timeout(Duration::from_secs(5));
/// assert!(!format!("{options:?}").contains("secret"));
/// ```
#[derive(Clone)]
pub struct AmqpOptions {
    pub(crate) url: String,
    pub(crate) prefix: String,
    pub(crate) topology: Topology,
    pub(crate) unrouted: Unrouted,
    pub(crate) delivery_limit: u32,
    pub(crate) confirm_window: usize,
    pub(crate) confirm_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) unavailable_timeout: Duration,
    pub(crate) reconnect_delay_max: Duration,
    pub(crate) heartbeat: Duration,
    pub(crate) publish_channels: usize,
    pub(crate) payload_bytes_max: usize,
    pub(crate) user_id: bool,
    pub(crate) turn: Turn,
}

impl AmqpOptions {
    /// The options of a broker at this address, such as `amqp://user:password@host:5672/virtual-host`. The default virtual
    /// host is written `%2f`.
    ///
    /// For a cluster, name several nodes, as in `amqp://user:password@one:5672,two:5672/virtual-host`. They are tried in turn,
    /// at the start and whenever a connection is lost. A load balancer or a DNS name also works if it leaves out nodes that do
    /// not answer.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            prefix: "saga.".to_owned(),
            topology: Topology::Declare,
            unrouted: Unrouted::Accept,
            delivery_limit: 20,
            confirm_window: 256,
            confirm_timeout: Duration::from_secs(5),
            connect_timeout: Duration::from_secs(10),
            unavailable_timeout: Duration::from_secs(5),
            reconnect_delay_max: Duration::from_secs(10),
            heartbeat: Duration::from_secs(5),
            publish_channels: 8,
            payload_bytes_max: 8 << 20,
            user_id: true,
            turn: Turn::default(),
        }
    }

    /// Sets the prefix of the names of all exchanges and queues: up to 64 bytes of `[A-Za-z0-9_.-]`. The default is `saga.`.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Sets how the transport treats exchanges and queues. By default it declares them.
    #[must_use]
    pub fn topology(mut self, topology: Topology) -> Self {
        self.topology = topology;
        self
    }

    /// Sets the outcome of an event that no queue accepts. By default it counts as sent.
    #[must_use]
    pub fn unrouted(mut self, unrouted: Unrouted) -> Self {
        self.unrouted = unrouted;
        self
    }

    /// Sets how often a message may return to its queue before it becomes a dead letter, at least 1. The default is 20. An
    /// existing queue keeps the limit with which it was declared.
    #[must_use]
    pub fn delivery_limit(mut self, deliveries: u32) -> Self {
        self.delivery_limit = deliveries.max(1);
        self
    }

    /// The most unconfirmed messages of one call, at least 1. The default is 256.
    #[must_use]
    pub fn confirm_window(mut self, messages: usize) -> Self {
        self.confirm_window = messages.max(1);
        self
    }

    /// How long the broker may be silent before the outcome of a sent message is unknown. The default is 5 seconds. The broker
    /// then has half of this time to show that the connection works; otherwise the transport reconnects. If the connection
    /// works, the transport keeps waiting for the confirm and does not send the message again.
    #[must_use]
    pub fn confirm_timeout(mut self, timeout: Duration) -> Self {
        self.confirm_timeout = timeout;
        self
    }

    /// How long connecting and declaring may take. The default is 10 seconds. If the URL names several hosts, connecting to each
    /// of them may take half of this time.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// How long publishing waits for a connection that is lost or blocked by the broker before it fails. The default is
    /// 5 seconds. Together with one and a half times the [`confirm_timeout`](Self::confirm_timeout) it must be shorter than the
    /// runtime's `Settings::publish_timeout`.
    #[must_use]
    pub fn unavailable_timeout(mut self, timeout: Duration) -> Self {
        self.unavailable_timeout = timeout;
        self
    }

    /// The longest pause between two attempts to connect. The default is 10 seconds.
    #[must_use]
    pub fn reconnect_delay_max(mut self, delay: Duration) -> Self {
        self.reconnect_delay_max = delay;
        self
    }

    /// The heartbeat interval, in whole seconds, at least 1. The default is 5 seconds. A connection counts as lost after twice
    /// this time. A `heartbeat` in the URL takes precedence.
    #[must_use]
    pub fn heartbeat(mut self, heartbeat: Duration) -> Self {
        self.heartbeat = heartbeat.max(Duration::from_secs(1));
        self
    }

    /// How many calls can publish at once, at least 1. The default is 8.
    #[must_use]
    pub fn publish_channels(mut self, channels: usize) -> Self {
        self.publish_channels = channels.max(1);
        self
    }

    /// The largest payload that is sent or received; a larger received one becomes a dead letter. The default is 8 MiB.
    ///
    /// The transport learns the size of a message only when it has received it, and the prefetch counts messages, not bytes. So
    /// a process may hold as much as the prefetch times the broker's `max_message_size`. Set that to the size of your
    /// payloads.
    #[must_use]
    pub fn payload_bytes_max(mut self, bytes: usize) -> Self {
        self.payload_bytes_max = bytes;
        self
    }

    /// Sends messages without the property `user-id`, which names the user of the connection and which the broker verifies. Use
    /// this if the broker knows the connection under another user than that of the URL. Receivers whose access policy names
    /// users refuse messages without this property.
    #[must_use]
    pub fn without_user_id(mut self) -> Self {
        self.user_id = false;
        self
    }

    /// The prefix of the names of all exchanges and queues.
    pub fn name_prefix(&self) -> &str {
        &self.prefix
    }

    /// The names that follow from the prefix.
    pub(crate) fn names(&self) -> Result<Names, TransportError> {
        Names::new(&self.prefix).map_err(|problem| TransportError::new(TransportErrorKind::Refused, "connect", problem))
    }
}

impl fmt::Debug for AmqpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the URL: it holds a password.
        f.debug_struct("AmqpOptions")
            .field("prefix", &self.prefix)
            .field("topology", &self.topology)
            .field("unrouted", &self.unrouted)
            .field("delivery_limit", &self.delivery_limit)
            .field("confirm_window", &self.confirm_window)
            .field("confirm_timeout", &self.confirm_timeout)
            .field("unavailable_timeout", &self.unavailable_timeout)
            .field("payload_bytes_max", &self.payload_bytes_max)
            .field("user_id", &self.user_id)
            .finish_non_exhaustive()
    }
}
