//! Each server on its own: what survives a kill, and what a proxy breaks.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says what it expects by failing")]

mod kafka_connect;
mod postgres;
mod proxy;
mod rabbitmq;
mod redis;
mod shared;
mod tansu;
