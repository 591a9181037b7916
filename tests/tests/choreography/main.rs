//! Sagas that are wired by events: three services, each with its own store. Every case runs on the memory store and
//! transport, on SQLite and RabbitMQ, and on PostgreSQL and RabbitMQ with two replicas of each service.

#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

mod cases;
mod events;
#[allow(dead_code, reason = "another test uses the rest of it")]
#[path = "../across_services/meddler.rs"]
mod meddler;
mod shop;
mod steps;
