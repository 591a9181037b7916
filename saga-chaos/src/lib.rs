//! Orders through three services, each with two replicas and a database of its own, while replicas and servers are killed,
//! stopped and cut off; and a judgement of what came of them.
//!
//! ```text
//! orders x 2 ----proxy----> PostgreSQL (killed, restarted)
//! payments x 2   \          three databases; that of the orders keeps a journal of its own
//! shipping x 2    \--proxy-> RabbitMQ (killed, restarted, out of memory, without a queue)
//!      |                       \--> whoever sends a copy of every message
//!      +--> the gateway and the carrier: calls that are held past their callers and past their undos
//! ```
//!
//! - [`plan`] says which faults there are, when, and on whom: a pure function of the seed.
//! - [`run`] carries a plan out and judges what came of it; [`Report`] is what it found.
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
