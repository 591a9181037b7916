//! The server of the tests, and what is sent over it.
#![allow(dead_code, unused_imports, reason = "no test uses all of it")]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod raw;
mod server;

pub(crate) use self::raw::Raw;
pub(crate) use self::server::{options, server, shared_server};
pub(crate) use saga_testkit::messages;
