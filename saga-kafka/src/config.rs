//! The properties of librdkafka.

use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::config::RDKafkaLogLevel;

use crate::options::KafkaOptions;
use crate::tls;
use crate::wire::wire::HEAD_BYTES_MAX;

/// How much of each partition is read ahead, unless the application says otherwise: 4 MiB, and how soon there is a look whether it has
/// become less. The library's own are 64 MiB and a second.
const READ_AHEAD: [(&str, &str); 2] = [("queued.max.messages.kbytes", "4096"), ("fetch.queue.backoff.ms", "20")];

fn base(options: &KafkaOptions) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("client.id", "saga")
        .set("bootstrap.servers", &options.brokers)
        // A cluster that comes back is found at once.
        .set("reconnect.backoff.max.ms", "1000")
        .set("topic.metadata.refresh.interval.ms", "30000")
        .set("socket.timeout.ms", millis(options.connect_timeout))
        .set("allow.auto.create.topics", "false");
    if let Some((name, value)) = tls::AUTHORITIES {
        config.set(name, value);
    }
    for (name, value) in &options.properties {
        config.set(name, value);
    }
    config
}

/// Sends each message once and in order to each partition, and knows whether all replicas in sync have it.
pub(crate) fn producer(options: &KafkaOptions) -> ClientConfig {
    let mut config = base(options);
    config
        // A connection that a broker closes at once is a line of this level; without it there is no reason to tell.
        .set_log_level(RDKafkaLogLevel::Info)
        .set("enable.idempotence", "true")
        .set("acks", "all")
        .set("message.timeout.ms", millis(options.publish_timeout))
        .set("message.max.bytes", (options.payload_bytes_max + HEAD_BYTES_MAX).to_string())
        // The relay sends many messages in a call, and waits for their confirmations: the shortest pause that still collects them.
        .set("linger.ms", "1");
    config
}

/// Creates topics by asking for them, where the broker is set so.
pub(crate) fn maker(options: &KafkaOptions) -> ClientConfig {
    let mut config = base(options);
    config.set("allow.auto.create.topics", "true");
    config
}

/// Creates topics, and asks for them.
pub(crate) fn admin(options: &KafkaOptions) -> ClientConfig {
    base(options)
}

/// Reads from where the group is, and commits only what it is told to.
pub(crate) fn consumer(options: &KafkaOptions, group: &str) -> ClientConfig {
    let mut config = base(options);
    for (name, value) in READ_AHEAD {
        if !options.properties.contains_key(name) {
            config.set(name, value);
        }
    }
    let heartbeat = (options.session_timeout / 5).clamp(Duration::from_millis(200), Duration::from_secs(3));
    config
        .set("group.id", group)
        .set("enable.auto.commit", "false")
        .set("enable.auto.offset.store", "false")
        .set("auto.offset.reset", "earliest")
        .set("partition.assignment.strategy", "cooperative-sticky")
        .set("session.timeout.ms", millis(options.session_timeout))
        .set("heartbeat.interval.ms", millis(heartbeat));
    config
}

fn millis(duration: Duration) -> String {
    duration.as_millis().max(1).to_string()
}
