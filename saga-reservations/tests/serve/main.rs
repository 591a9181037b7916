//! The program: what it serves, how it ends, and what it says about wrong options.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod http;
mod options;
mod over_redis;
mod program;
mod python;
mod stopping;
