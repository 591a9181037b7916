//! The transactions of the databases.

#[cfg(feature = "postgres")]
use std::borrow::Cow;
#[cfg(feature = "sqlite")]
use std::sync::Arc;

#[cfg(feature = "sqlite")]
use saga_sqlite::SqliteStore;
#[cfg(feature = "postgres")]
use sqlx::{ConnectOptions as _, PgPool};

#[cfg(feature = "postgres")]
use super::connection;
use super::work::{Work, WorkError};

/// A database.
#[derive(Debug, Clone)]
pub(super) enum Database {
    #[cfg(feature = "sqlite")]
    Sqlite(SqliteStore),
    #[cfg(feature = "postgres")]
    Postgres {
        pool: PgPool,
        /// Whether its connections keep statements that were prepared. Behind PgBouncer in transaction mode they must not.
        keeps_statements: bool,
    },
}

/// What sqlx calls the setting in an address.
#[cfg(feature = "postgres")]
const CAPACITY_PARAMETER: &str = "statement-cache-capacity";

impl Database {
    #[cfg(feature = "postgres")]
    pub(super) fn on_pool(pool: PgPool) -> Self {
        // The options do not say it otherwise.
        let url = pool.connect_options().to_url_lossy();
        let keeps_none = |(name, value): (Cow<'_, str>, Cow<'_, str>)| name == CAPACITY_PARAMETER && value == "0";
        let keeps_statements = !url.query_pairs().any(keeps_none);
        Self::Postgres { pool, keeps_statements }
    }

    /// Runs the work in a transaction of its own.
    pub(super) async fn transact<W: Work>(&self, work: W, clock_shift: i64) -> Result<W::Answer, WorkError> {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(store) => {
                let work = Arc::new(work);
                store.write_async(async move |conn| work.run(conn, clock_shift).await).await
            }
            #[cfg(feature = "postgres")]
            Self::Postgres { pool, keeps_statements } => {
                connection::transact(pool, *keeps_statements, work, clock_shift).await
            }
        }
    }
}
