//! The book, its client, its saga steps and its generated code.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says what it expects by failing")]

mod book;
mod generated;
mod group;
mod half_open;
mod heartbeat;
mod index_reads;
mod older_tables;
mod over_redis;
