//! Requests with an `Idempotency-Key`, on every store.

mod claim_first;
mod concurrency;
mod doubt;
mod fuzz;
mod in_flight;
mod limits;
mod mistakes;
mod python;
mod rules;
mod sagas;
mod statuses;
mod support;
