//! The transactions of the databases.

#[cfg(feature = "sqlite")]
use std::sync::Arc;

#[cfg(feature = "sqlite")]
use saga_sqlite::SqliteStore;
#[cfg(feature = "postgres")]
use sqlx::PgPool;

use super::work::{Work, WorkError};

/// A database.
#[derive(Debug, Clone)]
pub(super) enum Database {
    #[cfg(feature = "sqlite")]
    Sqlite(SqliteStore),
    #[cfg(feature = "postgres")]
    Postgres(PgPool),
}

impl Database {
    /// Runs the work in a transaction of its own.
    pub(super) async fn transact<W: Work>(&self, work: W, clock_shift: i64) -> Result<W::Answer, WorkError> {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(store) => {
                let work = Arc::new(work);
                store.write_async(async move |conn| work.run(conn, clock_shift).await).await
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(pool) => {
                // A transaction that is dropped is rolled back.
                let mut tx = pool.begin().await?;
                let answer = work.run(&mut *tx, clock_shift).await?;
                tx.commit().await?;
                Ok(answer)
            }
        }
    }
}
