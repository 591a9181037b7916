//! The order saga as a test rig: the program that the kill tests, the outage tests, `saga-chaos` and `cargo xtask demo
//! services` run.
//!
//! `examples/order-saga` is the one to copy. This one has the same five steps, written once for every database
//! ([`shop::ShopConn`]) and hosted by services, and around them what a test needs: orders that are read and checked, services
//! outside that decline, are slow and break down ([`outside`]), an audit of every book ([`verify`]), and a command line.

#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod admin;
pub mod cli;
pub mod contracts;
mod interrupt;
pub mod orders;
pub mod outside;
mod patience;
pub mod place;
pub mod print;
pub mod run;
pub mod saga;
pub mod sentence;
pub mod service;
pub mod shop;
pub mod steps;
pub mod verify;
