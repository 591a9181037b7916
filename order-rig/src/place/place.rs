use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use rusqlite::{Connection, OpenFlags};
use saga_cli::OpenStore;
use saga_core::store::{Archive, Store};
use saga_sql::SqlConn;

use crate::archive::ArchivedSaga;

/// A database that the shop's tables and the runtime's store are in together.
#[expect(async_fn_in_trait, reason = "this program asks for them one after the other, on its main thread")]
pub trait Place: OpenStore<Store: Store<Conn: SqlConn>> + Clone {
    /// The file with the book of the services outside.
    fn outside(&self) -> PathBuf;

    /// Where its sagas go before they are purged.
    fn archive(&self, store: &Self::Store) -> impl Archive;

    /// What went there, whole sagas only.
    async fn archived(&self) -> anyhow::Result<Vec<ArchivedSaga>>;

    /// Opens the shop's own tables beside the runtime.
    async fn open_shop(&self) -> anyhow::Result<<Self::Store as Store>::Conn>;

    /// Opens the shop's own tables to read.
    async fn open_shop_read_only(&self) -> anyhow::Result<<Self::Store as Store>::Conn>;
}

/// Opens a file to read.
pub fn read_book(path: &Path) -> anyhow::Result<Connection> {
    exists(path)?;
    Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .with_context(|| format!("cannot read {}", path.display()))
}

/// Whether there is such a file.
pub fn exists(path: &Path) -> anyhow::Result<()> {
    if path.exists() { Ok(()) } else { bail!("there is no {}; `order-rig run` makes it", path.display()) }
}
