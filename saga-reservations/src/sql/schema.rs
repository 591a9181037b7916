use saga_sql::{Dialect, SqlConn, SqlError};

/// Names are compared by their bytes, so that every process takes the locks of several resources in one order.
const POSTGRES: &str = "
    SELECT pg_advisory_xact_lock(7305794381162345);
    CREATE TABLE IF NOT EXISTS reservation_resources (
        name       TEXT COLLATE \"C\" PRIMARY KEY,
        capacity   BIGINT  NOT NULL,
        confirmed  BIGINT  NOT NULL,
        held       BIGINT  NOT NULL,
        last_token BIGINT  NOT NULL,
        is_unique  BOOLEAN NOT NULL,
        version    BIGINT  NOT NULL DEFAULT 1,
        CONSTRAINT reservation_resources_within_capacity
            CHECK (confirmed >= 0 AND held >= 0 AND confirmed + held <= capacity)
    );
    -- The tables of earlier versions of this crate do not have it.
    DO $$ BEGIN
        IF NOT EXISTS (SELECT FROM pg_attribute
                WHERE attrelid = 'reservation_resources'::regclass AND attname = 'version') THEN
            ALTER TABLE reservation_resources ADD COLUMN version BIGINT NOT NULL DEFAULT 1;
        END IF;
    END $$;
    CREATE TABLE IF NOT EXISTS reservations (
        key         TEXT COLLATE \"C\" PRIMARY KEY,
        lines       JSONB   NOT NULL,
        is_unique   BOOLEAN NOT NULL,
        state       TEXT    NOT NULL CHECK (state IN ('held', 'confirmed', 'released', 'expired', 'returned')),
        token       BIGINT  NOT NULL,
        first_token BIGINT  NOT NULL,
        expires_at  BIGINT  NOT NULL,
        changed_at  BIGINT  NOT NULL
    );
    CREATE INDEX IF NOT EXISTS reservations_held ON reservations (expires_at) WHERE state = 'held';
    CREATE INDEX IF NOT EXISTS reservations_past ON reservations (changed_at)
        WHERE state IN ('released', 'expired', 'returned');
";

const SQLITE: &str = "
    CREATE TABLE IF NOT EXISTS reservation_resources (
        name       TEXT    NOT NULL PRIMARY KEY,
        capacity   INTEGER NOT NULL,
        confirmed  INTEGER NOT NULL,
        held       INTEGER NOT NULL,
        last_token INTEGER NOT NULL,
        is_unique  INTEGER NOT NULL,
        version    INTEGER NOT NULL DEFAULT 1,
        CONSTRAINT reservation_resources_within_capacity
            CHECK (confirmed >= 0 AND held >= 0 AND confirmed + held <= capacity)
    ) STRICT;
    CREATE TABLE IF NOT EXISTS reservations (
        key         TEXT    NOT NULL PRIMARY KEY,
        lines       TEXT    NOT NULL,
        is_unique   INTEGER NOT NULL,
        state       TEXT    NOT NULL CHECK (state IN ('held', 'confirmed', 'released', 'expired', 'returned')),
        token       INTEGER NOT NULL,
        first_token INTEGER NOT NULL,
        expires_at  INTEGER NOT NULL,
        changed_at  INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX IF NOT EXISTS reservations_held ON reservations (expires_at) WHERE state = 'held';
    CREATE INDEX IF NOT EXISTS reservations_past ON reservations (changed_at)
        WHERE state IN ('released', 'expired', 'returned');
";

/// SQLite has no condition for a column.
const SQLITE_VERSIONS: &str = "SELECT count(*) FROM pragma_table_info('reservation_resources') WHERE name = 'version'";
const SQLITE_ADD_VERSION: &str = "ALTER TABLE reservation_resources ADD COLUMN version INTEGER NOT NULL DEFAULT 1";

/// Creates the tables `reservations` and `reservation_resources` in this transaction, if they are missing. An application
/// that reserves in its steps' own transactions calls it once, and again with a new version of this crate; [`SqlReservations`](crate::SqlReservations) does so by itself.
///
/// # Errors
/// When the database refuses it.
///
/// # Cancel safety
/// That of the transaction.
pub async fn create_tables<C: SqlConn>(conn: &mut C) -> Result<(), SqlError> {
    if C::DIALECT != Dialect::Sqlite {
        return conn.execute_batch(POSTGRES).await;
    }
    conn.execute_batch(SQLITE).await?;
    if conn.query_one::<i64>(SQLITE_VERSIONS, &[]).await? == 0 {
        conn.execute_batch(SQLITE_ADD_VERSION).await?;
    }
    Ok(())
}
