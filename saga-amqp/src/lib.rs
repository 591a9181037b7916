#![doc = include_str!("../README.md")]
//!
//! # How it works
//! - **No confirmed message is lost.** Messages are persistent and queues are quorum queues. A message counts as sent
//!   when the broker has confirmed it. If no confirm arrives, the outcome is unknown, and the message is sent again
//!   under the same id. There is one exception, in the first seconds of a queue: RabbitMQ 3.10 answers a declaration
//!   before it has stored where the queue is kept, so a crash in between may leave a queue that does not work. Its
//!   receiver gets an error that says so. Delete the queue, and the transport declares it again. Commands that were in
//!   it are sent again, events are not.
//! - **Publishing and receiving never share a connection.** A broker that blocks publishers still delivers. Each
//!   subscription has its own connection, so an error on one affects no other.
//! - **Any node of a cluster will do.** The URL may name several hosts, which are tried in turn, or a load balancer or
//!   DNS name in front of them. See [clusters](#clusters).
//! - **A full queue holds up its own messages only.** A message that the broker nacks waits in the outbox and is
//!   retried.
//! - **Every connection is supervised.** The transport reconnects with growing, jittered pauses, and declares its part
//!   of the topology each time. [`AmqpTransport::health`] shows the state.
//! - **Every delivery reaches the receiver**: as a message or, if it is malformed, as `Unreadable` with the reason; see
//!   [`WIRE`].
//!
//! # Clusters
//! While the node that leads a queue is frozen, messages wait until the other nodes have elected another leader.
//! RabbitMQ's failure detector usually starts the election within ten seconds, but it may overlook a node. The upper
//! bound is `net_ticktime` in `rabbitmq.conf`: after this time, plus or minus a quarter, the other nodes give the
//! frozen node up. The default of 60 s makes this 75 s at most; 8 s makes it 10 s. Until then, new connections may wait
//! for the frozen leader, and a message that was delivered to a consumer on the frozen node is not delivered again.
//!
//! A node that the cluster gave up must restart when it continues. With `cluster_partition_handling = pause_minority`
//! it usually does so by itself. With the default, `ignore`, or if the other nodes connect to it before it pauses,
//! `rabbitmqctl cluster_status` keeps showing a network partition, and an operator must restart the node.

mod backoff;
mod connection;
mod consumer;
mod error;
mod fate;
mod health;
mod hosts;
mod names;
mod options;
mod origin;
mod publisher;
mod quiet;
mod session;
mod settled;
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
