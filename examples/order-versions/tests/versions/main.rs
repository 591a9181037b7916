//! The example runs, its orders move at every boundary, and its stored sagas can be finished.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says what it expects by failing")]

mod explore;
mod golden;
mod run;
