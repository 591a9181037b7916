//! Locks of steps in memory, in virtual time: who is called when, and what ends a lock.
#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

mod definitions;
mod ends;
mod support;
mod turns;
