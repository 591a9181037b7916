//! What the kit gives to tests: virtual time, golden files, faulty stores, panicking steps, retention.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says what it expects by failing")]

mod coverage;
mod faulty;
mod golden;
mod golden_sub_sagas;
mod panics;
mod retention;
mod virtual_time;
