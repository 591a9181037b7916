#![doc = include_str!("../README.md")]

#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod cell;
mod conn;
mod error;
mod json;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod row;
#[cfg(feature = "sqlite")]
mod sqlite;
mod store;
mod to_sql;
mod value;

pub use self::conn::{Dialect, SqlConn};
pub use self::error::{SqlError, SqlErrorKind};
pub use self::json::Json;
pub use self::store::SqlStore;
pub use self::to_sql::ToSql;
pub use self::value::{SqlType, SqlValue};

/// Keeps [`SqlConn`] and [`SqlStore`] to the types of this crate, so that methods can be added.
mod sealed {
    pub trait Sealed {}
}
