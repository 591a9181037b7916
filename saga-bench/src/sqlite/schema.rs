//! The runtime's tables, as the floors write to them.

/// Every contender opens its file with these settings.
pub(crate) const SETTINGS: &str = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;";

/// The tables of the store that a step writes to.
pub(crate) const RUNTIME_SCHEMA: &str = "
    CREATE TABLE sagas (
        id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, key TEXT NOT NULL, definition TEXT NOT NULL,
        definition_version INTEGER NOT NULL, status TEXT NOT NULL, version INTEGER NOT NULL, state BLOB NOT NULL,
        input BLOB NOT NULL, request_hash BLOB NOT NULL, started_at INTEGER NOT NULL, ended_at INTEGER
    );
    CREATE UNIQUE INDEX sagas_by_key ON sagas (tenant, key);
    CREATE TABLE work (
        id INTEGER PRIMARY KEY, saga INTEGER NOT NULL, kind TEXT NOT NULL, step TEXT NOT NULL, definition TEXT NOT NULL,
        definition_version INTEGER NOT NULL, payload BLOB, due_at INTEGER NOT NULL, epoch INTEGER NOT NULL,
        owner INTEGER, leased_until INTEGER, attempts INTEGER NOT NULL, maybe INTEGER NOT NULL
    );
    CREATE INDEX work_by_due ON work (due_at);
    CREATE INDEX work_by_saga ON work (saga);
    CREATE TABLE records (
        tenant TEXT NOT NULL, key TEXT NOT NULL, step TEXT NOT NULL, saga INTEGER NOT NULL, outcome TEXT NOT NULL,
        output BLOB, position INTEGER NOT NULL, attempts INTEGER NOT NULL, took INTEGER NOT NULL, at INTEGER NOT NULL,
        PRIMARY KEY (tenant, key, step)
    ) WITHOUT ROWID;
";
