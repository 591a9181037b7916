//! Where things are: the store's file, and beside it the book of the services outside.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, bail};
use rusqlite::{Connection, OpenFlags};
use saga_sqlite::{SqliteOptions, SqliteStore};

/// The store that is used when none is given: a file in the folder that the program is started in.
pub const DEFAULT_STORE: &str = "sqlite:order-saga.db";

/// How long a write of this program waits for one of the runtime.
const BUSY_WAIT: Duration = Duration::from_secs(10);

/// The files of one shop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    store: PathBuf,
}

impl Place {
    /// Reads a store's URL.
    ///
    /// # Errors
    ///
    /// A sentence that says what a URL of a store looks like.
    pub fn parse(url: &str) -> anyhow::Result<Self> {
        let Some((scheme, path)) = url.split_once(':') else {
            bail!("--store takes a URL such as {DEFAULT_STORE}, not {url:?}");
        };
        if scheme != "sqlite" {
            bail!("--store knows the scheme sqlite:, as in {DEFAULT_STORE}, but not {scheme}:");
        }
        let path = path.strip_prefix("//").unwrap_or(path);
        if path.is_empty() || path.starts_with(':') {
            bail!("--store needs the path of a file behind sqlite:, as in {DEFAULT_STORE}");
        }
        Ok(Self { store: path.into() })
    }

    /// The store's file, which the shop's own tables are in as well.
    pub fn store(&self) -> &Path {
        &self.store
    }

    /// The store's file with its whole path, for people.
    pub fn shown(&self) -> String {
        std::path::absolute(&self.store).unwrap_or_else(|_| self.store.clone()).display().to_string()
    }

    /// The file of the services outside.
    pub fn outside(&self) -> PathBuf {
        let mut path = self.store.clone().into_os_string();
        path.push(".outside.db");
        path.into()
    }

    /// Opens the store, to work on it. Where another process does, it waits and says so.
    ///
    /// # Errors
    ///
    /// A sentence, when there is no store that this program can work on.
    ///
    /// # Cancel safety
    ///
    /// Dropped, nothing stays open.
    pub async fn open_store(&self) -> anyhow::Result<SqliteStore> {
        let waits = |path: &Path| eprintln!("waiting for another process that works on {}", path.display());
        Ok(SqliteStore::open_with(SqliteOptions::new(&self.store).on_wait(waits)).await?)
    }

    /// Opens the store beside whoever works on it, to look only.
    ///
    /// # Errors
    ///
    /// A sentence, when there is no store or it cannot be read.
    ///
    /// # Cancel safety
    ///
    /// Dropped, nothing stays open.
    pub async fn look_at_store(&self) -> anyhow::Result<SqliteStore> {
        exists(&self.store)?;
        Ok(SqliteStore::open_with(SqliteOptions::new(&self.store).read_only()).await?)
    }

    /// Opens the shop's own tables beside the runtime.
    ///
    /// # Errors
    ///
    /// A sentence, when the file cannot be opened.
    pub fn open_shop(&self) -> anyhow::Result<Connection> {
        let conn = Connection::open(&self.store).with_context(|| format!("cannot open {}", self.store.display()))?;
        conn.busy_timeout(BUSY_WAIT)?;
        Ok(conn)
    }

    /// Opens one of the files, to look only.
    ///
    /// # Errors
    ///
    /// A sentence, when there is no such file or it cannot be read.
    pub fn read_only(path: &Path) -> anyhow::Result<Connection> {
        exists(path)?;
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
            .with_context(|| format!("cannot read {}", path.display()))
    }
}

fn exists(path: &Path) -> anyhow::Result<()> {
    if path.exists() { Ok(()) } else { bail!("there is no {}; `order-saga run` makes it", path.display()) }
}

/// Checks the URL of a transport.
///
/// # Errors
///
/// A sentence that names the transports there are.
pub fn check_transport(url: &str) -> anyhow::Result<()> {
    if url == "memory:" {
        return Ok(());
    }
    let scheme = url.split_once(':').map_or(url, |(scheme, _)| scheme);
    bail!("--transport knows memory: only, where all steps run in this process, but not {scheme:?}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_file_and_the_book_outside_stands_beside_it() {
        let place = Place::parse("sqlite:some/shop.db").expect("a good URL");
        assert_eq!(place.store(), Path::new("some/shop.db"));
        assert_eq!(place.outside(), Path::new("some/shop.db.outside.db"));
        assert_eq!(Place::parse("sqlite:///tmp/a.db").expect("a good URL").store(), Path::new("/tmp/a.db"));
    }

    #[test]
    fn other_urls_are_refused_in_one_sentence() {
        for (url, said) in [
            ("shop.db", "takes a URL such as sqlite:order-saga.db"),
            ("postgres://u:secret@h/d", "knows the scheme sqlite:, as in sqlite:order-saga.db, but not postgres:"),
            ("sqlite:", "needs the path of a file"),
            ("sqlite::memory:", "needs the path of a file"),
        ] {
            let error = Place::parse(url).expect_err(url).to_string();
            assert!(error.contains(said) && !error.contains("secret") && !error.contains('\n'), "{error}");
        }
        assert!(check_transport("memory:").is_ok());
        assert!(check_transport("amqp://u:secret@h").is_err_and(|error| !error.to_string().contains("secret")));
    }
}
