use std::fmt;
use std::time::Duration;

use saga_core::transport::{TransportError, TransportErrorKind};

use crate::hosts::Turn;
use crate::names::Names;

/// Who makes the exchanges and queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Topology {
    /// The transport declares what it needs, each time it connects.
    #[default]
    Declare,
    /// The transport only looks whether they are there, and says which one is missing. Bindings cannot be looked at.
    Check,
    /// The transport neither declares nor looks.
    None,
}

/// What becomes of an event that no queue takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unrouted {
    /// It counts as sent: an event may have no subscribers.
    #[default]
    Accept,
    /// It is refused: subscribers are expected, so a queue or a binding is missing.
    Refuse,
}

/// How to connect, and the limits.
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
    /// Of a cluster name several nodes, as in `amqp://user:password@one:5672,two:5672/virtual-host`: they are tried in turn,
    /// at the start and whenever a connection is lost. A balancer or a DNS name in front of the nodes does as well, if it
    /// leaves out those that do not answer.
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

    /// What the names of all exchanges and queues begin with: up to 64 bytes of `[A-Za-z0-9_.-]`. By default `saga.`.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Who makes the exchanges and queues. By default the transport does.
    #[must_use]
    pub fn topology(mut self, topology: Topology) -> Self {
        self.topology = topology;
        self
    }

    /// What becomes of an event that no queue takes. By default it counts as sent.
    #[must_use]
    pub fn unrouted(mut self, unrouted: Unrouted) -> Self {
        self.unrouted = unrouted;
        self
    }

    /// How often a message may come back to its queue before it is a dead letter, at least 1. By default 20. A queue that
    /// exists keeps the limit that it was declared with.
    #[must_use]
    pub fn delivery_limit(mut self, deliveries: u32) -> Self {
        self.delivery_limit = deliveries.max(1);
        self
    }

    /// How many messages of one call may be unconfirmed at a time, at least 1. By default 256.
    #[must_use]
    pub fn confirm_window(mut self, messages: usize) -> Self {
        self.confirm_window = messages.max(1);
        self
    }

    /// How long the broker may be silent before the outcome of what was sent is unknown. By default 5 seconds. Half of that
    /// it then has to show that the connection works; one that does not is made again. On one that does the message is
    /// waited for, and is not sent a second time meanwhile.
    #[must_use]
    pub fn confirm_timeout(mut self, timeout: Duration) -> Self {
        self.confirm_timeout = timeout;
        self
    }

    /// How long connecting and declaring may take. By default 10 seconds. Where the URL names several hosts, connecting to
    /// each of them may take half of that.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// How long publishing waits for a connection that is lost, or that the broker holds back, before it fails. By default
    /// 5 seconds. Together with one and a half times the [`confirm_timeout`](Self::confirm_timeout) it has to be shorter than
    /// the runtime's `Settings::publish_timeout`.
    #[must_use]
    pub fn unavailable_timeout(mut self, timeout: Duration) -> Self {
        self.unavailable_timeout = timeout;
        self
    }

    /// The longest pause between two attempts to connect. By default 10 seconds.
    #[must_use]
    pub fn reconnect_delay_max(mut self, delay: Duration) -> Self {
        self.reconnect_delay_max = delay;
        self
    }

    /// How long the other side may be silent before the connection counts as lost, in whole seconds, at least 1. The URL's
    /// own `heartbeat` goes before it. By default 5 seconds; a connection is given up after twice that.
    #[must_use]
    pub fn heartbeat(mut self, heartbeat: Duration) -> Self {
        self.heartbeat = heartbeat.max(Duration::from_secs(1));
        self
    }

    /// How many calls may publish at one time, at least 1. By default 8.
    #[must_use]
    pub fn publish_channels(mut self, channels: usize) -> Self {
        self.publish_channels = channels.max(1);
        self
    }

    /// The largest payload that is sent, and that is taken from a queue; a larger one becomes a dead letter. By default 8
    /// MiB.
    ///
    /// That a message is too large is known only when it is here, and a broker counts the messages that are under way, not
    /// their bytes. So a process may hold as much as the prefetch times the broker's own `max_message_size`: set that to
    /// what your payloads need.
    #[must_use]
    pub fn payload_bytes_max(mut self, bytes: usize) -> Self {
        self.payload_bytes_max = bytes;
        self
    }

    /// Sends messages without the property `user-id`, which names the user of the connection and is checked by the broker.
    /// It is needed where the broker knows the connection under another user than the URL names. Receivers with an access
    /// policy for users refuse what comes without it.
    #[must_use]
    pub fn without_user_id(mut self) -> Self {
        self.user_id = false;
        self
    }

    /// What the names of all exchanges and queues begin with.
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
