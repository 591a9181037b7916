//! The audit: whether the shop's tables and the books of the services outside agree, whatever the runtime says;
//! and whether the runtimes are at rest.

mod audit;
mod books;
mod command;
mod compare;
mod rest;
mod sagas;
#[cfg(test)]
mod tests;

pub use audit::{Audit, Finding, audit, check_first_stock};
pub use books::Books;
pub use command::verify;
pub use compare::compare;
pub use sagas::OrderSaga;
