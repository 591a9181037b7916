#![doc = include_str!("../README.md")]

mod backoff;
mod batch;
mod body;
mod clients;
mod environment;
mod error;
mod health;
mod held;
mod keeper;
#[cfg(test)]
mod mock;
mod names;
mod options;
mod poller;
mod publisher;
#[cfg(test)]
mod publisher_tests;
mod receiver;
#[cfg(test)]
mod receiver_tests;
mod request;
mod settler;
mod subscribed;
mod text;
mod topology;
mod transport;
mod url;
mod wire;

pub use self::health::{PublisherHealth, SqsHealth, SubscriptionHealth};
pub use self::options::{Declare, SqsOptions};
pub use self::transport::SqsTransport;

/// The page about queues, topics, attributes and bodies, exact enough to write a client in another language from it.
#[doc = include_str!("../docs/wire.md")]
pub const WIRE: &str = include_str!("../docs/wire.md");
