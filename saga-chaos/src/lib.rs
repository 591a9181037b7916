//! Runs orders through three services, each with two replicas and its own database, while replicas and servers are
//! killed, stopped and cut off, and judges the result.
//!
//! ```text
//! orders x 2 --own proxy--proxy--> PostgreSQL (killed, restarted, out of room)
//! payments x 2   \                 three databases; the orders database also keeps a journal
//! shipping x 2    \--proxy-> RabbitMQ (killed, restarted, out of memory or room, without a queue, with a full queue)
//!      |                       \--> the copier: sends a copy of every message
//!      +--proxy--> the gateway and the carrier: calls are held past the time-outs and undos of their steps, or all are slow
//! ```
//!
//! # Faults that take more than a signal
//!
//! - **Overload**: the external services answer 700 ms later, and an orders process starts, all at once, twice the
//!   orders that the execution slots of the services can handle in that time. The fault counts if twice as many calls
//!   wait as there are slots.
//! - **Partition**: the proxy in front of one replica delays or drops all bytes between the replica and PostgreSQL for
//!   5 to 60 s, alternately shorter and longer than the member TTL of the replica.
//! - **Closed standard error**: the log pipe of a replica is closed, and its connections to PostgreSQL are closed so
//!   that it has something to log. The other replica of its service is stopped until 40 orders have ended, so this
//!   replica must work.
//! - **Full disk**: a replica starts with a log that has no room (`/dev/full`) and works alone as above; the broker
//!   finds its disk full; the file system of the tables has no room. This file system is a `tmpfs` that is mounted for
//!   the run, which needs root. If mounting is refused, the run says so and counts what it left out. The server's own
//!   files are elsewhere.
//! - **Full queue**: a policy limits the queue of a service that is down. The fault counts if a message was refused.
//!
//! A fault that nothing runs into is tried again. A kind of fault that was planned and never happened is a problem of the run.
//!
//! With Kafka or SQS instead of RabbitMQ, the faults are left out that only RabbitMQ can have: cuts of its connections, its queues, its memory
//! and its disk, and the copies of its messages. SQS is a mock that forgets everything, so it is not killed either.
//!
//! # Retention
//!
//! With [`Options::purges`], what has ended is archived, becomes a tombstone and is deleted, while all of this goes on. The rig
//! starts orders again that have become tombstones. In the end everything has been purged.
//!
//! The payments service also sends malformed messages about orders that have ended, which become dead letters. The operator discards
//! each letter when the purge of its order was refused twice: no order is purged before that, and all are in the end.
//!
//! # Modules
//!
//! - [`plan`] decides which faults occur, when, and to which process or server. It is a pure function of the seed.
//! - [`run`] executes a plan and judges the result in a [`Report`].
//!
//! `cargo xtask chaos --minutes 20 --seed 7` runs it. The same seed gives the same plan, but the
//! faults meet the processes at other moments.

mod inject;
mod judge;
mod orders;
pub mod plan;
mod report;
mod run;
mod watch;
mod world;

pub use report::{Report, Row};
pub use run::{Options, Where, run};
pub use world::{Programs, Transport, print_time};
