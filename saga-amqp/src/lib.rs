//! The RabbitMQ transport of the saga runtime: confirmed publishing, quorum queues, supervised reconnects.
//!
//! ```no_run
//! use saga_amqp::AmqpTransport;
//!
//! # async fn connect() -> Result<(), Box<dyn std::error::Error>> {
//! let transport = AmqpTransport::connect("amqp://guest:guest@localhost:5672/%2f").await?;
//! # drop(transport);
//! # Ok(())
//! # }
//! ```
//!
//! - **Nothing that was confirmed is lost.** Messages are persistent, queues are quorum queues, and a message counts as sent
//!   when the broker confirmed it. An answer that does not come is an unknown outcome, and the message is sent again under
//!   the same id. In its first seconds a queue is an exception: RabbitMQ 3.10 answers a declaration before it has written
//!   down where the queue is kept, so a crash in between may leave a queue that does not work. Its receiver gets an error that
//!   says so; delete the queue, and it is declared again. Commands that were in it are sent again, events are not.
//! - **Publishing and receiving never share a connection**, so that a broker that holds publishers back still delivers.
//!   Every subscription has a connection of its own: what breaks one breaks no other.
//! - **Of a cluster any node will do.** The URL may name several hosts, which are tried in turn, or a balancer or DNS name in
//!   front of them. While the node that leads a queue is frozen, work goes on as soon as the other nodes have elected another
//!   leader. RabbitMQ's failure detector mostly starts that within ten seconds, but it may overlook a node; what bounds the
//!   wait is `net_ticktime` in `rabbitmq.conf`. After this time, give or take a quarter of it, the others give the node up.
//!   The default of 60 s makes that 75 s at most, 8 s makes it 10 s. Until then, new connections may wait for the frozen
//!   leader, and what had been delivered to a consumer on a frozen node is not delivered again. A node that was given up and
//!   goes on has to start anew. With `cluster_partition_handling = pause_minority` it mostly does so. With the default,
//!   `ignore`, or if the others connect to it before it pauses, `rabbitmqctl cluster_status` goes on to show a network
//!   partition, and the node has to be restarted.
//! - **A full queue holds up its own messages only**: what the broker nacks waits in the outbox and is tried again.
//! - **Every connection is supervised**: it is made again with growing, jittered pauses, and declares its part of the
//!   topology each time. [`AmqpTransport::health`] says how things stand.
//! - **Whatever arrives is delivered**: as a message, or as what is none, with the reason; see [`WIRE`].
//!
//! `amqps://` needs one of the features `tls-ring`, `tls-aws-lc-rs` and `tls-native`.

mod backoff;
mod connection;
mod consumer;
mod error;
mod health;
mod hosts;
mod log;
mod names;
mod options;
mod origin;
mod publisher;
mod quiet;
mod session;
mod supervisor;
mod topology;
mod transport;
mod unsettled;
mod window;
mod wire;

pub use self::health::{AmqpHealth, ConnectionHealth, ConnectionState, SubscriptionHealth};
pub use self::options::{AmqpOptions, Topology, Unrouted};
pub use self::transport::AmqpTransport;

/// The page about properties and headers, exact enough to write a client in another language from it.
#[doc = include_str!("../docs/wire.md")]
pub const WIRE: &str = include_str!("../docs/wire.md");
