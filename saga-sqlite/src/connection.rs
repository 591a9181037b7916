//! Connections as the store sets them.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use saga_core::store::{StoreError, StoreErrorKind};

use crate::error::open_error;
use crate::options::{SqliteOptions, Synchronous};

/// More than the store's own statements, so that those of the steps find room.
const STATEMENT_CACHE: usize = 192;
/// What is kept of a write-ahead log that grew.
const JOURNAL_BYTES_MAX: i64 = 64 << 20;
/// How many pages of write-ahead log are collected before they are copied to the file.
const CHECKPOINT_PAGES: i64 = 4_000;
/// SQLite's page cache, in KiB: a negative number is a size, a positive one a number of pages.
const CACHE_KIB: i64 = -32 * 1024;

/// Says what is wrong with the folder of `path`, before SQLite says it in its own words.
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
        Ok(_) => refuse(StoreErrorKind::NotWritable, &format!("{} is no folder; name another place", folder.display())),
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
        tracing::debug!(%error, "the write-ahead log could not be emptied; the next process does it");
    }
    if let Err((_, error)) = conn.close() {
        tracing::debug!(%error, "the writer's connection could not be closed");
    }
}

fn common(conn: &Connection) -> rusqlite::Result<()> {
    conn.set_prepared_statement_cache_capacity(STATEMENT_CACHE);
    conn.pragma_update(None, "cache_size", CACHE_KIB)?;
    conn.pragma_update(None, "temp_store", "MEMORY")
}

/// SQLite opens a file that it cannot write for reading, without a word.
fn refuse_read_only(conn: &Connection, path: &Path) -> Result<(), StoreError> {
    if !conn.is_readonly("main").map_err(|error| open_error(path, error))? {
        return Ok(());
    }
    let detail = format!("{} may only be read; check its rights, or open it read only", path.display());
    Err(StoreError::new(StoreErrorKind::NotWritable, "open", detail))
}
