//! What the tests share: places on the server, sagas of one step, and bodies that do as they are told.
#![allow(dead_code, unreachable_pub, unused_imports, reason = "every test binary uses its own part of this")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod body;
mod harness;
mod server;

pub use body::{Body, Meeting, Notes, complete, keep, write_note};
pub use harness::{Edit, Postgres};
pub use saga_testkit::one_step::{advanced, asks_for, begun, completed, definition, member, new_saga, status};
pub use server::{Place, address, blocker_of, server};
