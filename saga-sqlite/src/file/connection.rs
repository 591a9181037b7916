//! Connections with the store's settings.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use saga_core::store::{StoreError, StoreErrorKind};

use crate::error::open_error;
use crate::options::{SqliteOptions, Synchronous};

/// More than the store's own statements, to leave room for those of the steps.
const STATEMENT_CACHE: usize = 192;
/// The size to which a grown write-ahead log is truncated.
const JOURNAL_BYTES_MAX: i64 = 64 << 20;
/// The number of pages in the write-ahead log at which they are copied to the file.
const CHECKPOINT_PAGES: i64 = 4_000;
/// SQLite's page cache, in KiB: a negative number is a size, a positive one a number of pages.
const CACHE_KIB: i64 = -32 * 1024;

/// Checks the folder of `path`, with a clearer error than SQLite's.
pub(crate) fn check_folder(path: &Path) -> Result<(), StoreError> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let refuse = |kind, problem: &str| {
        let detail = format!("{} cannot be a store: {problem}", path.display());
        Err(StoreError::new(kind, "open", detail))
    };
    if path.is_dir() {
        return refuse(StoreErrorKind::NotAStore, "it is a folder; name a file");
    }
    match folder.metadata() {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => {
            refuse(StoreErrorKind::NotWritable, &format!("{} is not a folder; name another path", folder.display()))
        }
        Err(error) => {
            let problem =
                format!("its folder {} cannot be used ({error}); create it or name another", folder.display());
            refuse(StoreErrorKind::NotWritable, &problem)
        }
    }
}

pub(crate) fn open_writer(options: &SqliteOptions) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || -> rusqlite::Result<Connection> {
        let conn = Connection::open_with_flags(&options.path, flags)?;
        conn.busy_timeout(options.busy_timeout)?;
        conn.pragma_update(None, "journal_mode", "WAL")?;
        let synchronous = match options.synchronous {
            Synchronous::Full => "FULL",
            Synchronous::Normal => "NORMAL",
        };
        conn.pragma_update(None, "synchronous", synchronous)?;
        conn.pragma_update(None, "foreign_keys", true)?;
        conn.pragma_update(None, "journal_size_limit", JOURNAL_BYTES_MAX)?;
        conn.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
        common(&conn)?;
        Ok(conn)
    };
    let conn = open().map_err(|error| open_error(&options.path, error))?;
    refuse_read_only(&conn, &options.path)?;
    Ok(conn)
}

pub(crate) fn open_reader(options: &SqliteOptions) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || -> rusqlite::Result<Connection> {
        let conn = Connection::open_with_flags(&options.path, flags)?;
        conn.busy_timeout(options.busy_timeout)?;
        conn.pragma_update(None, "query_only", true)?;
        common(&conn)?;
        Ok(conn)
    };
    open().map_err(|error| open_error(&options.path, error))
}

/// Empties the write-ahead log and closes the connection.
pub(crate) fn close_writer(conn: Connection) {
    if let Err(error) = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(())) {
        tracing::debug!(%error, "write-ahead log not truncated");
    }
    if let Err((_, error)) = conn.close() {
        tracing::debug!(%error, "writer connection not closed");
    }
}

fn common(conn: &Connection) -> rusqlite::Result<()> {
    conn.set_prepared_statement_cache_capacity(STATEMENT_CACHE);
    conn.pragma_update(None, "cache_size", CACHE_KIB)?;
    conn.pragma_update(None, "temp_store", "MEMORY")
}

/// SQLite silently opens a file that it cannot write for reading.
fn refuse_read_only(conn: &Connection, path: &Path) -> Result<(), StoreError> {
    if !conn.is_readonly("main").map_err(|error| open_error(path, error))? {
        return Ok(());
    }
    let detail = format!("{} is not writable; check its permissions, or open it read only", path.display());
    Err(StoreError::new(StoreErrorKind::NotWritable, "open", detail))
}
