//! The shop's own tables, in the same database as the saga store: what the business knows, and all that `verify` reads of it.

mod tables;
mod tally;

pub use tables::{catalogue, load_products, migrate};
pub use tally::Tally;
