//! The outbox: publishes committed messages, from memory or through the relay.

mod blocked_topics;
mod fast_path;
mod publisher;
mod relay;
mod sent_rows;

pub(crate) use self::fast_path::Outbox;
pub(crate) use self::publisher::Publisher;
pub(crate) use self::relay::Relay;
