//! The order saga as a program: run, killed, interrupted, starved, fed with nonsense, and audited.
#![allow(clippy::expect_used, reason = "a test ends where something fails that is not under test")]

mod broken_stderr;
mod cancel;
mod control;
mod dead_letters;
mod explore;
mod full_disk;
mod input;
mod inspect;
mod kill;
mod outage;
mod pause;
mod postgres;
mod purge;
mod run;
mod services;
mod support;
mod verify;
