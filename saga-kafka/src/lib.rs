#![doc = include_str!("../README.md")]

mod config;
mod dead_letter;
mod debezium;
mod error;
mod fixed_properties;
mod group;
mod health;
mod library_log;
mod mark;
mod mock;
mod names;
mod options;
mod partition;
mod partitioner;
mod parts;
mod places;
mod poller;
mod producer;
mod publisher;
mod queues;
mod rebalance;
mod receiver;
mod record;
mod spread;
mod state;
mod text;
mod topics;
mod transport;
mod url;
mod watchdog;
mod wire;

pub use self::health::{KafkaHealth, PublisherHealth, SubscriptionHealth};
pub use self::mock::MockCluster;
pub use self::options::{KafkaOptions, Topics};
pub use self::transport::KafkaTransport;

/// The page about topics, keys and headers, exact enough to write a client in another language from it.
#[doc = include_str!("../docs/wire.md")]
pub const WIRE: &str = include_str!("../docs/wire.md");
