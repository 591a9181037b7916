//! Services on PostgreSQL and RabbitMQ: what nobody should send, what a broker gives up, and servers that stay away.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says what it expects by failing")]

mod absent_host;
mod bad_messages;
mod cluster;
mod full_queue;
mod given_up;
mod outages;
mod permissions;
mod place;
mod stranger;
