//! The broker of the tests, and what they do behind the transport's back.
#![allow(dead_code, unused_imports, reason = "no test uses all of it")]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod broker;
pub(crate) mod messages;
pub(crate) mod wait;

pub(crate) use self::broker::{Broker, DeadLetter, limit_queue, unique_prefix};
