use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context;
use rusqlite::Connection;
use saga_cli::OpenStore;
use saga_core::store::Archive;
use saga_sqlite::{SqliteOptions, SqliteStore};

use super::{Place, exists, read_book};
use crate::{
    archive::{ArchivedSaga, FileArchive},
    print::say,
};

/// How long a write of this program waits for one of the runtime.
const BUSY_WAIT: Duration = Duration::from_secs(10);

/// A file, which one process works on at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlitePlace(pub PathBuf);

impl SqlitePlace {
    fn beside(&self, ending: &str) -> PathBuf {
        let mut path = self.0.clone().into_os_string();
        path.push(ending);
        path.into()
    }

    fn file_archive(&self) -> FileArchive {
        FileArchive::at(self.beside(".archive.jsonl"))
    }
}

impl OpenStore for SqlitePlace {
    type Store = SqliteStore;

    fn name(&self) -> String {
        std::path::absolute(&self.0).unwrap_or_else(|_| self.0.clone()).display().to_string()
    }

    async fn open(&self) -> anyhow::Result<SqliteStore> {
        let waits = |path: &Path| say(format_args!("waiting for another process that works on {}", path.display()));
        // How long another run of the rig takes says nothing about this one.
        let options = SqliteOptions::new(&self.0).wait_for_lock(Duration::MAX).on_wait(waits);
        Ok(SqliteStore::open_with(options).await?)
    }

    async fn open_read_only(&self) -> anyhow::Result<SqliteStore> {
        exists(&self.0)?;
        Ok(SqliteStore::open_with(SqliteOptions::new(&self.0).read_only()).await?)
    }
}

impl Place for SqlitePlace {
    fn outside(&self) -> PathBuf {
        self.beside(".outside.db")
    }

    fn archive(&self, _store: &SqliteStore) -> impl Archive {
        self.file_archive()
    }

    async fn archived(&self) -> anyhow::Result<Vec<ArchivedSaga>> {
        self.file_archive().read()
    }

    async fn open_shop(&self) -> anyhow::Result<Connection> {
        let conn = Connection::open(&self.0).with_context(|| format!("cannot open {}", self.0.display()))?;
        conn.busy_timeout(BUSY_WAIT)?;
        Ok(conn)
    }

    async fn open_shop_read_only(&self) -> anyhow::Result<Connection> {
        read_book(&self.0)
    }
}
