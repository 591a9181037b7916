//! What the peers' programs share, so that each of them is only its engine.
//!
//! - [`work`] is the order work: its steps, its undos and the orders that are declined; [`Business`] writes their rows
//!   and counts them afterwards.
//! - A peer is a [`Subject`]: its name, whether it is durable, and the function that makes a [`Job`]'s sagas with it.
//! - Between its own set-up and its end the function measures with a [`Meter`]: the time from the first start of a saga
//!   until the last has durably ended, and the processor time of this process.
//! - [`call_all`] starts sagas as callers who wait for their outcome; a peer with a queue enqueues
//!   them all, by [`start_all`] or in bulk, and its last handlers count down a [`Remaining`], and [`wait_until_none`] asks its tables whether all is recorded.
//! - [`main`] reads the command line, makes the tables, runs the subject, counts the rows and prints one line of JSON.

mod arguments;
mod business;
mod callers;
mod cpu;
mod drained;
mod job;
mod meter;
mod program;
mod remaining;
mod subject;
pub mod work;

pub use self::business::Business;
pub use self::callers::{call_all, start_all};
pub use self::drained::wait_until_none;
pub use self::job::Job;
pub use self::meter::{Measured, Meter};
pub use self::program::main;
pub use self::remaining::Remaining;
pub use self::subject::{Running, Subject};
