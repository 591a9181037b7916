//! A saga whose steps are hosted by other services: each has its own store, and they share a transport. Every case runs on
//! the memory store and transport, on SQLite and RabbitMQ, and on PostgreSQL and RabbitMQ with two replicas of each service.

#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

mod cases;
mod lists;
mod meddler;
mod shop;
mod within;
