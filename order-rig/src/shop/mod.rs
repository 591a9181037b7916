//! The shop's own tables, in the same database as the saga store: what the business knows, and all that `verify` reads of it.

mod conn;
mod postgres;
mod sqlite;
mod tables;
mod tally;

pub(crate) use conn::values;
pub use conn::{Row, ShopConn, Value};
pub(crate) use postgres::is_behind_pooler;
pub use tables::{catalogue, load_products, migrate};
pub use tally::Tally;
