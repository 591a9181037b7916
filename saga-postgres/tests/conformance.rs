//! The suite that every store is held to, on PostgreSQL.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a suite fails by panicking")]

mod support;

use saga_testkit::store_main;
use support::Postgres;

store_main!(start_in: Postgres::new());
