//! Orders through three services, each with two replicas and a database of its own, while replicas and servers are killed,
//! stopped and cut off; and a judgement of the result.
//!
//! ```text
//! orders x 2 --own proxy--proxy--> PostgreSQL (killed, restarted, out of room)
//! payments x 2   \                 three databases; that of the orders keeps a journal of its own
//! shipping x 2    \--proxy-> RabbitMQ (killed, restarted, out of memory or room, without a queue, with a full queue)
//!      |                       \--> the copier: sends a copy of every message
//!      +--proxy--> the gateway and the carrier: calls that are held past their callers and past their undos, or all slow
//! ```
//!
//! # Faults that take more than a signal
//!
//! - **Overload**: the services outside answer 700 ms later, and an orders process starts, at once, twice the orders that
//!   the services have lines for in that time. It counts when twice as many calls wait as there are lines.
//! - **Partition**: the proxy in front of one replica keeps all bytes between it and PostgreSQL, or loses them, for 5 to
//!   60 s, by turns shorter and longer than the replica may be silent for.
//! - **Closed standard error**: the pipe that a replica logs to is closed, and its connections to PostgreSQL, so that it has
//!   something to say. The other replica of its service is stopped until 40 orders have ended, so the replica works.
//! - **Full disk**: a replica starts on a log that has no room (`/dev/full`), and works alone as above; the broker finds its
//!   disk full; the file system of the tables has no room. That one is a `tmpfs` that is mounted for the run, which takes
//!   root; where mounting is refused, the run says so and counts what it left out. The server's own files lie elsewhere.
//! - **Full queue**: a policy limits the queue of a service that is away; it counts when a message was refused.
//!
//! - [`plan`] says which faults there are, when, and on whom: a pure function of the seed.
//! - [`run`] carries a plan out and judges the result; [`Report`] is what it found.
//!
//! `cargo xtask chaos --minutes 20 --seed 7` runs it. A failing seed runs again with the same plan, though the processes
//! meet its faults at other moments.

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
pub use world::{Programs, print_time};
