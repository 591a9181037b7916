//! Where the sagas are stored: a SQLite file, or with the feature `postgres` a PostgreSQL database.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::ensure;
use saga_cli::{OpenStore, print_remark};
use saga_sqlite::{SqliteOptions, SqliteStore};

/// How long to wait for another process that works on the file: a person waits too.
const WAIT_FOR_LOCK: Duration = Duration::from_secs(5);

/// A SQLite file, on which one process works at a time.
pub(crate) struct SqliteFile(pub(crate) PathBuf);

impl OpenStore for SqliteFile {
    type Store = SqliteStore;

    fn name(&self) -> String {
        self.0.display().to_string()
    }

    async fn open(&self) -> anyhow::Result<SqliteStore> {
        let waits =
            |file: &Path| print_remark(format_args!("waiting for another process that works on {}", file.display()));
        let options = SqliteOptions::new(&self.0).wait_for_lock(WAIT_FOR_LOCK).on_wait(waits);
        Ok(SqliteStore::open_with(options).await?)
    }

    async fn open_read_only(&self) -> anyhow::Result<SqliteStore> {
        ensure!(self.0.exists(), "there is no {}; `order-saga run` makes it", self.0.display());
        Ok(SqliteStore::read_only(&self.0).await?)
    }
}

/// A PostgreSQL database, on which several processes may work.
#[cfg(feature = "postgres")]
pub(crate) struct PostgresDatabase(pub(crate) String);

#[cfg(feature = "postgres")]
impl OpenStore for PostgresDatabase {
    type Store = saga_postgres::PostgresStore;

    /// Without the password.
    fn name(&self) -> String {
        let place = self.0.rsplit_once('@').map_or(self.0.as_str(), |(_, place)| place);
        place.split('?').next().unwrap_or_default().to_owned()
    }

    async fn open(&self) -> anyhow::Result<Self::Store> {
        Ok(saga_postgres::PostgresStore::connect(&self.0).await?)
    }

    async fn open_read_only(&self) -> anyhow::Result<Self::Store> {
        Ok(saga_postgres::PostgresStore::read_only(&self.0).await?)
    }
}
