//! The messages of `saga-amqp/docs/wire.md`, with a service that was written in another language from that document alone:
//! as a host, as one who asks, and beside services that know each other's events.

#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

mod asks;
mod events;
mod hosts;
mod participant;
