#![doc = include_str!("../README.md")]

mod config;
mod error;
mod fixed_properties;
mod health;
mod library_log;
mod mock;
mod names;
mod options;
mod publishing;
mod subscription;
mod tls;
mod topics;
mod transport;
mod url;
mod wire;

pub use self::health::{KafkaHealth, PublisherHealth, SubscriptionHealth};
pub use self::mock::MockCluster;
pub use self::options::{KafkaOptions, Topics};
pub use self::transport::KafkaTransport;

/// The page about topics, keys and headers, exact enough to write a client in another language from it.
#[doc = include_str!("../docs/wire.md")]
pub const WIRE: &str = include_str!("../docs/wire.md");
