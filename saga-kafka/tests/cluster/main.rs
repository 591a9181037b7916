//! The transport on a cluster: what it does when brokers fail, when partitions move, and when others send.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says what it expects by failing")]

#[path = "../support/mod.rs"]
mod support;

mod faults;
mod groups;
mod killed;
mod strangers;
mod topics;
