//! The statements that the databases write differently.

use saga_sql::{Dialect, SqlConn};

/// The microseconds since 1970 by the database's clock. It must not be read before the rows are locked.
macro_rules! now {
    (sqlite) => {
        "CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000"
    };
    (postgres) => {
        "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
    };
}

/// The elements of a JSON list of texts, as what a column is compared with.
macro_rules! one_of {
    (sqlite) => {
        "IN (SELECT value FROM json_each($1))"
    };
    (postgres) => {
        "= ANY (ARRAY(SELECT jsonb_array_elements_text($1)))"
    };
}

/// The same where most of a table may be asked for: PostgreSQL joins it, where it would compare each row with each name.
macro_rules! joined_with {
    (sqlite) => {
        one_of!(sqlite)
    };
    (postgres) => {
        "IN (SELECT jsonb_array_elements_text($1))"
    };
}

macro_rules! statements {
    ($database:ident, $for_update:literal, $skip:literal) => {
        Statements {
            lock_resources: concat!(
                "SELECT name, capacity, confirmed, held, last_token, is_unique FROM reservation_resources WHERE name ",
                joined_with!($database),
                " ORDER BY name",
                $for_update
            ),
            #[cfg(feature = "postgres")]
            lock_free_resources: concat!(
                "SELECT name, capacity, confirmed, held, last_token, is_unique FROM reservation_resources WHERE name ",
                joined_with!($database),
                " ORDER BY name",
                $for_update,
                $skip
            ),
            #[cfg(feature = "redis")]
            read_resources: concat!(
                "SELECT name, capacity, confirmed, held, last_token, is_unique, version FROM reservation_resources",
                " WHERE name ",
                one_of!($database)
            ),
            #[cfg(feature = "postgres")]
            find_resources: concat!("SELECT name FROM reservation_resources WHERE name ", one_of!($database)),
            #[cfg(feature = "postgres")]
            read_lines: concat!("SELECT key, lines FROM reservations WHERE key ", one_of!($database)),
            // One row at least, for the time.
            read_reservations: concat!(
                "SELECT ",
                now!($database),
                " + $2 AS now, key, lines, is_unique, state, token, first_token, expires_at, changed_at",
                " FROM (SELECT 1) AS one LEFT JOIN reservations ON key ",
                one_of!($database)
            ),
            read_overdue: concat!(
                "SELECT key, lines FROM reservations WHERE state = 'held' AND expires_at <= ",
                now!($database),
                " + $1 ORDER BY expires_at LIMIT $2"
            ),
            prune: concat!(
                "DELETE FROM reservations WHERE key IN (SELECT key FROM reservations",
                " WHERE state IN ('released', 'expired', 'returned') AND changed_at < ",
                now!($database),
                " + $1 - $2 ORDER BY changed_at LIMIT $3",
                $for_update,
                ")"
            ),
        }
    };
}

/// The statements of one database.
pub(super) struct Statements {
    /// `$1`: names. They are locked in their order.
    pub(super) lock_resources: &'static str,
    /// `$1`: names. Those that another transaction has locked are left out.
    #[cfg(feature = "postgres")]
    pub(super) lock_free_resources: &'static str,
    /// `$1`: names.
    #[cfg(feature = "redis")]
    pub(super) read_resources: &'static str,
    /// `$1`: names.
    #[cfg(feature = "postgres")]
    pub(super) find_resources: &'static str,
    /// `$1`: keys.
    #[cfg(feature = "postgres")]
    pub(super) read_lines: &'static str,
    /// `$1`: keys, `$2`: how far the clock is moved.
    pub(super) read_reservations: &'static str,
    /// `$1`: how far the clock is moved, `$2`: how many.
    pub(super) read_overdue: &'static str,
    /// `$1`: how far the clock is moved, `$2`: how long they are kept, `$3`: how many.
    pub(super) prune: &'static str,
}

const SQLITE: Statements = statements!(sqlite, "", "");
const POSTGRES: Statements = statements!(postgres, " FOR UPDATE", " SKIP LOCKED");

/// The statements of a connection's database.
pub(super) fn of<C: SqlConn>() -> &'static Statements {
    if C::DIALECT == Dialect::Sqlite { &SQLITE } else { &POSTGRES }
}
