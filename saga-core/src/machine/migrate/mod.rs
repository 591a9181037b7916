//! Moving a saga to another version of its definition.

mod arms;
mod migrate;
mod route;

pub use self::migrate::migrate;
pub use self::route::{Migrated, Route};
