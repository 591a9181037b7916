//! The simulation: that it finds what is wrong, and nothing else.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says what it expects by failing")]

mod sim_branches;
mod sim_checker;
mod sim_choreography;
mod sim_executor;
mod sim_guarantees;
mod sim_mutants;
mod sim_schedules;
