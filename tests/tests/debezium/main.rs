//! Debezium's connector for PostgreSQL, in a worker of Kafka Connect, instead of the relay: with the configuration that `docs/cdc.md` shows,
//! each row of an outbox arrives as the page says.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says what it expects by failing")]

mod mapping;
mod orders;
mod outbox;
mod page;
mod place;
mod records;
