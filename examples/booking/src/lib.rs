//! A seat is booked, paid and confirmed as a whole, or not at all: three services and an orchestrator.
//!
//! Read `saga.rs` first: it is the process. `contracts.rs` is what the services know of each other, `services` has their steps
//! and the seat map, and `outside` stands for a card processor and a mail server. `orchestrator` runs the process, here or in a process of its own.
//! `held_replies.rs` is a transport that keeps each answer of a service until it is told to deliver it, so that a test and the
//! story on the terminal can look at the saga in between.

#![allow(missing_docs, missing_debug_implementations, reason = "an application, whose types are what their names say")]

#[cfg(feature = "broker")]
pub mod broker;
pub mod contracts;
pub mod deployment;
pub mod event;
pub mod held_replies;
pub mod orchestrator;
pub mod outside;
pub mod request;
pub mod saga;
pub mod services;
pub mod state;
pub mod story;
