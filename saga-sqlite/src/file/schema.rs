//! The runtime's tables, in numbered migrations that the table `saga_migrations` records.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior};
use saga_core::store::{StoreError, StoreErrorKind, Timestamp};

use crate::error::open_error;

struct Migration {
    number: i64,
    name: &'static str,
    sql: &'static str,
}

/// In the order of their numbers. A released migration never changes.
const MIGRATIONS: [Migration; 9] = [
    Migration { number: 1, name: "tables", sql: include_str!("../../migrations/0001_tables.sql") },
    Migration { number: 2, name: "shapes", sql: include_str!("../../migrations/0002_shapes.sql") },
    Migration { number: 3, name: "reports", sql: include_str!("../../migrations/0003_reports.sql") },
    Migration { number: 4, name: "begun", sql: include_str!("../../migrations/0004_begun.sql") },
    Migration { number: 5, name: "retention", sql: include_str!("../../migrations/0005_retention.sql") },
    Migration { number: 6, name: "idempotency_keys", sql: include_str!("../../migrations/0006_idempotency_keys.sql") },
    Migration { number: 7, name: "semantic_locks", sql: include_str!("../../migrations/0007_semantic_locks.sql") },
    Migration { number: 8, name: "unclosed_steps", sql: include_str!("../../migrations/0008_unclosed_steps.sql") },
    Migration { number: 9, name: "lookups", sql: include_str!("../../migrations/0009_lookups.sql") },
];

const LATEST: i64 = MIGRATIONS[MIGRATIONS.len() - 1].number;

const JOURNAL: &str = "CREATE TABLE IF NOT EXISTS saga_migrations (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT";

/// Brings the schema to this version, in one transaction.
pub(crate) fn migrate(conn: &mut Connection, path: &Path, now: Timestamp) -> Result<(), StoreError> {
    // A file of a newer version is left as it is.
    let found = version(conn).map_err(|error| open_error(path, error))?.unwrap_or(0);
    refuse_newer(path, found)?;
    if found == LATEST {
        return Ok(());
    }
    apply(conn, now).map_err(|error| open_error(path, error))
}

/// Refuses a file with another schema version.
pub(crate) fn require(conn: &Connection, path: &Path) -> Result<(), StoreError> {
    let found = version(conn).map_err(|error| open_error(path, error))?;
    let path_text = path.display();
    let (kind, detail) = match found {
        None => {
            (StoreErrorKind::NotAStore, format!("{path_text} holds no sagas; name the file that a runtime works on"))
        }
        Some(found) if found < LATEST => {
            let detail =
                format!("{path_text} has schema {found}, and this version reads {LATEST}; open it once for writing");
            (StoreErrorKind::NotWritable, detail)
        }
        Some(found) => return refuse_newer(path, found),
    };
    Err(StoreError::new(kind, "open", detail))
}

fn refuse_newer(path: &Path, found: i64) -> Result<(), StoreError> {
    if found <= LATEST {
        return Ok(());
    }
    let path = path.display();
    let detail = format!(
        "{path} has schema {found}, written by a newer version; this one knows schemas up to {LATEST}: update this program"
    );
    Err(StoreError::new(StoreErrorKind::NewerSchema, "open", detail))
}

fn version(conn: &Connection) -> rusqlite::Result<Option<i64>> {
    let exists = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'saga_migrations'";
    if conn.query_row(exists, (), |_| Ok(())).optional()?.is_none() {
        return Ok(None);
    }
    conn.query_row("SELECT coalesce(max(number), 0) FROM saga_migrations", (), |row| row.get(0)).map(Some)
}

fn apply(conn: &mut Connection, now: Timestamp) -> rusqlite::Result<()> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    tx.execute(JOURNAL, ())?;
    let found: i64 = tx.query_row("SELECT coalesce(max(number), 0) FROM saga_migrations", (), |row| row.get(0))?;
    for migration in MIGRATIONS.iter().filter(|migration| migration.number > found) {
        tx.execute_batch(migration.sql)?;
        let row = (migration.number, migration.name, now.0);
        tx.execute("INSERT INTO saga_migrations (number, name, applied_at) VALUES (?1, ?2, ?3)", row)?;
    }
    tx.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn migrations_are_numbered_from_one_and_applied_once() {
        let numbers: Vec<i64> = MIGRATIONS.iter().map(|migration| migration.number).collect();
        assert_eq!(numbers, (1..=LATEST).collect::<Vec<_>>());

        let mut conn = Connection::open_in_memory().unwrap();
        let path = Path::new("orders.db");
        migrate(&mut conn, path, Timestamp(7)).unwrap();
        migrate(&mut conn, path, Timestamp(8)).unwrap();
        let applied: Vec<i64> = conn
            .prepare("SELECT applied_at FROM saga_migrations")
            .and_then(|mut statement| statement.query_map((), |row| row.get(0))?.collect())
            .unwrap();
        assert_eq!(applied, vec![7; MIGRATIONS.len()]);
    }

    #[test]
    fn a_file_of_the_first_schema_keeps_what_it_has() {
        let mut conn = Connection::open_in_memory().unwrap();
        conn.execute(JOURNAL, ()).unwrap();
        conn.execute_batch(MIGRATIONS[0].sql).unwrap();
        conn.execute("INSERT INTO saga_migrations VALUES (1, 'tables', 7)", ()).unwrap();
        conn.execute("INSERT INTO saga_definitions (name, version) VALUES ('create-order', 1)", ()).unwrap();
        migrate(&mut conn, Path::new("orders.db"), Timestamp(8)).unwrap();
        assert_eq!(version(&conn).unwrap(), Some(LATEST));
        let kept = "SELECT name, digest IS NULL AND shape IS NULL FROM saga_definitions";
        let kept: (String, bool) = conn.query_row(kept, (), |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        assert_eq!(kept, ("create-order".to_owned(), true), "nothing is known yet of what it was");
    }

    #[test]
    fn an_open_letter_of_an_earlier_version_is_found_by_its_saga() {
        let mut conn = Connection::open_in_memory().unwrap();
        conn.execute(JOURNAL, ()).unwrap();
        for migration in &MIGRATIONS[..4] {
            conn.execute_batch(migration.sql).unwrap();
            let note = "INSERT INTO saga_migrations VALUES (?1, ?2, 7)";
            conn.execute(note, (migration.number, migration.name)).unwrap();
        }
        // Another header has the text of this one in it.
        let pairs = [("ä", "10:saga-cause7:order-2"), ("saga-cause", "order-1")];
        let pairs = pairs.map(|(name, text)| (name.to_owned(), text.to_owned()));
        let insert = "INSERT INTO saga_dead_letters (id, fingerprint, tenant, reason, detail, source, headers, payload, \
             attempts, seen, buried_at, state) VALUES (?1, ?2, 'acme', '', '', '', ?3, x'', 1, 1, 1, 'open')";
        conn.execute(insert, (1, [1_u8], crate::statements::rows::pairs_text(&pairs))).unwrap();
        conn.execute(insert, (2, [2_u8], crate::statements::rows::pairs_text(&pairs[..1]))).unwrap();
        migrate(&mut conn, Path::new("orders.db"), Timestamp(8)).unwrap();
        let keys: Vec<Option<String>> = conn
            .prepare("SELECT saga_key FROM saga_dead_letters ORDER BY id")
            .and_then(|mut statement| statement.query_map((), |row| row.get(0))?.collect())
            .unwrap();
        assert_eq!(keys, [Some("order-1".to_owned()), None]);
    }

    #[test]
    fn a_newer_schema_is_refused_and_left_as_it_is() {
        let mut conn = Connection::open_in_memory().unwrap();
        let path = Path::new("orders.db");
        migrate(&mut conn, path, Timestamp(7)).unwrap();
        conn.execute("INSERT INTO saga_migrations VALUES (?1, 'later', 8)", [LATEST + 1]).unwrap();
        for error in [migrate(&mut conn, path, Timestamp(9)).unwrap_err(), require(&conn, path).unwrap_err()] {
            assert_eq!(error.kind(), StoreErrorKind::NewerSchema);
            assert!(error.to_string().contains(&format!("orders.db has schema {}", LATEST + 1)), "{error}");
        }
    }
}
