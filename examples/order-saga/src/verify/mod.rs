//! The audit: whether the shop's tables and the books of the services outside agree, whatever the runtime says.

mod audit;
mod books;
mod command;
#[cfg(test)]
mod tests;

pub use audit::{Audit, Finding, audit};
pub use books::Books;
pub use command::verify;
