use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use saga_core::transport::{TransportError, TransportErrorKind};

use crate::fixed_properties::is_fixed;
use crate::names::Names;
use crate::tls;

/// How the transport treats topics that do not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Topics {
    /// The transport creates them: receivers those of their services and of dead letters, senders and receivers those of events.
    #[default]
    Create,
    /// The transport asks the broker to create them with its own defaults, by `auto.create.topics.enable`.
    OnDemand,
    /// The transport creates none, and names a missing one.
    Check,
}

/// The options of a transport, and its limits.
///
/// ```
/// use std::time::Duration;
///
/// use saga_kafka::{KafkaOptions, Topics};
///
/// let options = KafkaOptions::new("one:9092,two:9092")
///     .prefix("shop.")
///     .partitions(24)
///     .replication_factor(3)
///     .publish_timeout(Duration::from_secs(5))
///     .property("sasl.password", "secret");
/// assert!(!format!("{options:?}").contains("secret"));
/// ```
#[derive(Clone)]
pub struct KafkaOptions {
    pub(crate) brokers: String,
    pub(crate) names: Result<Names, String>,
    pub(crate) topics: Topics,
    pub(crate) partitions: i32,
    pub(crate) replication_factor: i32,
    pub(crate) rejections_max: u32,
    pub(crate) payload_bytes_max: usize,
    pub(crate) connect_timeout: Duration,
    pub(crate) publish_timeout: Duration,
    pub(crate) session_timeout: Duration,
    pub(crate) join_timeout: Duration,
    pub(crate) redelivers_within: Option<Duration>,
    pub(crate) properties: BTreeMap<String, String>,
}

impl KafkaOptions {
    /// The options of a cluster, of which these brokers are asked first, such as `one:9092,two:9092`.
    pub fn new(brokers: impl Into<String>) -> Self {
        Self {
            brokers: brokers.into(),
            names: Names::new("saga."),
            topics: Topics::Create,
            partitions: 12,
            replication_factor: -1,
            rejections_max: 20,
            payload_bytes_max: 950 << 10,
            connect_timeout: Duration::from_secs(10),
            publish_timeout: Duration::from_secs(10),
            session_timeout: Duration::from_secs(15),
            join_timeout: Duration::from_mins(1),
            redelivers_within: None,
            properties: BTreeMap::new(),
        }
    }

    /// Sets the prefix of the names of all topics and consumer groups: up to 64 bytes of `[A-Za-z0-9.-]`. The default is `saga.`.
    #[must_use]
    pub fn prefix(mut self, prefix: impl AsRef<str>) -> Self {
        self.names = Names::new(prefix.as_ref());
        self
    }

    /// Uses the topics that a Debezium connector writes to from the outbox of a store: `outbox.event.` and the topic, or the name
    /// of the service. This replaces the prefix.
    ///
    /// What such a connector sends is understood in any case. The transport sends to these topics as to others.
    #[must_use]
    pub fn debezium(mut self) -> Self {
        self.names = Ok(Names::of_debezium());
        self
    }

    /// Sets how the transport treats topics that do not exist. By default it creates them.
    #[must_use]
    pub fn topics(mut self, topics: Topics) -> Self {
        self.topics = topics;
        self
    }

    /// How many partitions a topic has that the transport creates, at least 1. The default is 12. No more processes of one
    /// service receive at a time.
    #[must_use]
    pub fn partitions(mut self, partitions: u16) -> Self {
        self.partitions = i32::from(partitions.max(1));
        self
    }

    /// How many brokers keep a topic that the transport creates. By default the cluster decides.
    #[must_use]
    pub fn replication_factor(mut self, brokers: u16) -> Self {
        self.replication_factor = i32::from(brokers.max(1));
        self
    }

    /// How often a rejected message is delivered again before it becomes a dead letter. The default is 20. Each process counts on
    /// its own, in memory.
    #[must_use]
    pub fn rejections_max(mut self, rejections: u32) -> Self {
        self.rejections_max = rejections;
        self
    }

    /// The largest payload that is sent or received; a larger received one becomes a dead letter. The default is 950 KiB: with
    /// its headers it fits into what a broker takes by default (`message.max.bytes`, a mebibyte).
    #[must_use]
    pub fn payload_bytes_max(mut self, bytes: usize) -> Self {
        self.payload_bytes_max = bytes;
        self
    }

    /// How long connecting may take, and any question to the cluster. The default is 10 seconds.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// How long a message waits for its confirmation before its outcome is unknown, also while no broker can be reached; and how
    /// long a topic is looked for before its first message is sent. The default is 10 seconds. It must be shorter than the
    /// runtime's `Settings::publish_timeout`.
    #[must_use]
    pub fn publish_timeout(mut self, timeout: Duration) -> Self {
        self.publish_timeout = timeout;
        self
    }

    /// How long a receiver may be silent before the cluster gives its partitions to another one. The default is 15 seconds. The
    /// broker limits it (`group.min.session.timeout.ms`, 6 seconds by default).
    #[must_use]
    pub fn session_timeout(mut self, timeout: Duration) -> Self {
        self.session_timeout = timeout;
        self
    }

    /// How long [`subscribe`](saga_core::transport::Transport::subscribe) waits until the consumer group has a place in every
    /// partition of a new topic. The default is one minute.
    #[must_use]
    pub fn join_timeout(mut self, timeout: Duration) -> Self {
        self.join_timeout = timeout;
        self
    }

    /// The longest `retention.ms` of the topics. A runtime that forgets the ids of messages earlier does not start. By default
    /// nothing is known, and the runtime does not check it.
    #[must_use]
    pub fn retention(mut self, retention: Duration) -> Self {
        self.redelivers_within = Some(retention);
        self
    }

    /// Sets a property of librdkafka, such as `security.protocol` or `sasl.password`. Those that the guarantees rest on cannot be
    /// set. No value of a property is part of an error, a log event or `Debug`.
    #[must_use]
    pub fn property(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.properties.insert(name.into(), value.into());
        self
    }

    /// The names that follow from the prefix, if the options are valid.
    pub(crate) fn names(&self) -> Result<Names, TransportError> {
        let refused = |problem| TransportError::new(TransportErrorKind::Refused, "connect", problem);
        if let Some(name) = self.properties.keys().find(|name| is_fixed(name)) {
            let problem = format!("the property {name} cannot be set: the transport's guarantees rest on its value");
            return Err(refused(problem));
        }
        tls::check(&self.properties).map_err(refused)?;
        self.names.clone().map_err(refused)
    }
}

impl fmt::Debug for KafkaOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Only the names of properties: their values may be secret.
        f.debug_struct("KafkaOptions")
            .field("brokers", &self.brokers)
            .field("names", &self.names)
            .field("topics", &self.topics)
            .field("partitions", &self.partitions)
            .field("replication_factor", &self.replication_factor)
            .field("rejections_max", &self.rejections_max)
            .field("payload_bytes_max", &self.payload_bytes_max)
            .field("publish_timeout", &self.publish_timeout)
            .field("session_timeout", &self.session_timeout)
            .field("properties", &self.properties.keys())
            .finish_non_exhaustive()
    }
}
