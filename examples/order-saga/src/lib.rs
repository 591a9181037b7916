//! The order saga: an order is placed, its stock reserved, the card charged, the shipment booked, the order confirmed,
//! and whatever was done is undone when a later step fails.
//!
//! Read [`steps`] first, then [`saga`]; the rest is what any program has: reading, tables, other people's services,
//! a command line and an audit.

#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod cli;
pub mod contracts;
pub mod desk;
mod interrupt;
pub mod letters;
pub mod orders;
pub mod outbox;
pub mod outside;
mod patience;
pub mod place;
pub mod print;
pub mod run;
pub mod saga;
pub mod sentence;
pub mod service;
pub mod shop;
pub mod show;
pub mod steps;
pub mod verify;
