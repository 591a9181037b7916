//! The status routes on every store: who sees what, and when a client that waits is answered.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says what it expects by failing")]

mod dead_letters;
mod events;
mod fixture;
mod leaving;
mod list;
mod one;
mod schema;
mod stores;
mod tenants;
mod waiting;
