//! Requests with an `Idempotency-Key` on PostgreSQL, beside the same handler without one.

mod application;
mod run;

pub(crate) use application::{on, payment};
pub(crate) use run::run;
