use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use crate::contract::ReservationsStore;
use crate::{MemoryReservations, ReservationsError, SqlReservations};

/// Where the reservations are kept. The address of a database is not shown: it may have a password.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreUrl {
    /// `memory:`
    Memory,
    /// `sqlite:FILE`
    Sqlite(PathBuf),
    /// `postgres://..`
    Postgres(String),
}

/// An address of a store that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no store; write `sqlite:FILE`, `postgres://USER@HOST/DATABASE`, or `memory:` for a test")]
pub struct InvalidStoreUrl(String);

impl FromStr for StoreUrl {
    type Err = InvalidStoreUrl;

    fn from_str(text: &str) -> Result<Self, InvalidStoreUrl> {
        match text.split_once(':') {
            Some(("memory", "")) => Ok(Self::Memory),
            Some(("sqlite", path)) if !path.is_empty() => {
                Ok(Self::Sqlite(path.strip_prefix("//").unwrap_or(path).into()))
            }
            Some(("postgres" | "postgresql", rest)) if rest.starts_with("//") => Ok(Self::Postgres(text.to_owned())),
            // A password is not repeated in a log.
            _ => {
                let behind = text.rsplit_once('@').map_or(text, |(_, behind)| behind);
                Err(InvalidStoreUrl(behind.split_once('?').map_or(behind, |(place, _)| place).to_owned()))
            }
        }
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("Memory"),
            Self::Sqlite(path) => f.debug_tuple("Sqlite").field(path).finish(),
            Self::Postgres(_) => f.write_str("Postgres(..)"),
        }
    }
}

impl StoreUrl {
    /// Opens the store.
    ///
    /// # Errors
    /// When it cannot be opened.
    ///
    /// # Cancel safety
    /// Dropped, a file or tables may have been created.
    pub async fn open(&self) -> Result<Arc<dyn ReservationsStore>, ReservationsError> {
        if let Some(sql) = self.open_sql().await? {
            return Ok(Arc::new(sql));
        }
        let memory = MemoryReservations::current();
        Ok(Arc::new(memory.map_err(|error| ReservationsError::unavailable("open the memory", error))?))
    }

    /// Opens the database. `None` if it is the memory.
    pub(super) async fn open_sql(&self) -> Result<Option<SqlReservations>, ReservationsError> {
        Ok(match self {
            Self::Memory => None,
            Self::Sqlite(path) => Some(SqlReservations::open_sqlite(path).await?),
            Self::Postgres(url) => Some(SqlReservations::connect_postgres(url).await?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_memory_a_file_or_a_database() {
        assert_eq!("memory:".parse(), Ok(StoreUrl::Memory));
        assert_eq!("sqlite:a/b.db".parse(), Ok(StoreUrl::Sqlite("a/b.db".into())));
        assert_eq!("sqlite:///a/b.db".parse(), Ok(StoreUrl::Sqlite("/a/b.db".into())));
        assert_eq!("postgres://h/d".parse(), Ok(StoreUrl::Postgres("postgres://h/d".into())));
        for wrong in ["", "memory", "sqlite:", "postgres:d", "redis://h", "/a/b.db"] {
            assert_eq!(wrong.parse::<StoreUrl>(), Err(InvalidStoreUrl(wrong.to_owned())));
        }
        for wrong in ["mysql://u:secret@h/d", "postgres:/u:s@secret@h/d", "postgres:h?password=secret"] {
            let error = wrong.parse::<StoreUrl>().unwrap_err();
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
    #[test]
    fn a_password_of_the_database_is_not_shown() {
        let shown = |text: &str| format!("{:?}", text.parse::<StoreUrl>().unwrap());
        assert_eq!(shown("postgres://ada:secret@h/d?password=secret"), "Postgres(..)");
        assert_eq!(shown("sqlite:a/b.db"), r#"Sqlite("a/b.db")"#);
        assert_eq!(shown("memory:"), "Memory");
    }
}
