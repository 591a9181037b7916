//! The properties of librdkafka that an application cannot set.

/// The properties that the guarantees rest on. Only the transport sets them.
const FIXED: [&str; 18] = [
    "acks",
    "allow.auto.create.topics",
    "auto.offset.reset",
    "bootstrap.servers",
    "delivery.timeout.ms",
    "enable.auto.commit",
    "enable.auto.offset.store",
    "enable.idempotence",
    "enable.partition.eof",
    "group.id",
    "group.protocol",
    "isolation.level",
    "message.max.bytes",
    "message.timeout.ms",
    "partition.assignment.strategy",
    "request.required.acks",
    "session.timeout.ms",
    "transactional.id",
];

/// Whether the property is the transport's own.
pub(crate) fn is_fixed(name: &str) -> bool {
    FIXED.contains(&name)
}
