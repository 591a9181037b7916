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

/// The time as the bound of an index. PostgreSQL reckons a query once, but the clock anew for each row, so that it would read the
/// whole index.
macro_rules! now_once {
    ($database:ident, $shift:literal) => {
        concat!("(SELECT ", now!($database), $shift, ")")
    };
}

/// The elements of a JSON list of texts.
///
/// PostgreSQL estimates that a list in JSON has 100 rows, and reads the whole table that it joins with one. It estimates that the
/// condition, which always holds, leaves one row, and then looks each row up by its key.
macro_rules! elements {
    (sqlite, $list:literal) => {
        concat!("SELECT value AS given FROM json_each(", $list, ")")
    };
    (postgres, $list:literal) => {
        concat!("SELECT given FROM jsonb_array_elements_text(", $list, ") AS given WHERE given = given || ''")
    };
}

/// The resources of the reservations with these keys.
macro_rules! resources_of {
    (sqlite, $keys:literal) => {
        concat!(
            "SELECT line.value ->> 'resource' FROM reservations CROSS JOIN json_each(lines) AS line WHERE reservations.key IN (",
            elements!(sqlite, $keys),
            ")"
        )
    };
    (postgres, $keys:literal) => {
        concat!(
            "SELECT line ->> 'resource' FROM (",
            elements!(postgres, $keys),
            ") AS list JOIN reservations ON key = given CROSS JOIN jsonb_array_elements(lines) AS line",
            " WHERE line = line || '{}'"
        )
    };
}

/// Whether a name is in the answer of a query.
///
/// PostgreSQL runs the query once and keeps the list. It must not join: where a transaction waited for a locked row, PostgreSQL looks whether
/// the row's new version is still meant, and in a join with a list without duplicates it finds only the first name again.
macro_rules! is_in {
    (sqlite, $($query:expr),+) => {
        concat!("name IN (", $($query),+, ")")
    };
    (postgres, $($query:expr),+) => {
        concat!("name = ANY (ARRAY(", $($query),+, "))")
    };
}

macro_rules! statements {
    ($database:ident, $for_update:literal, $skip:literal) => {
        Statements {
            lock_resources: concat!(
                "SELECT name, capacity, confirmed, held, last_token, is_unique FROM reservation_resources WHERE ",
                is_in!($database, elements!($database, "$1"), " UNION ALL ", resources_of!($database, "$2")),
                " ORDER BY name",
                $for_update
            ),
            #[cfg(feature = "postgres")]
            lock_free_resources: concat!(
                "SELECT name, capacity, confirmed, held, last_token, is_unique FROM reservation_resources WHERE ",
                is_in!($database, elements!($database, "$1"), " UNION ALL ", resources_of!($database, "$2")),
                " ORDER BY name",
                $for_update,
                $skip
            ),
            #[cfg(feature = "redis")]
            read_resources: concat!(
                "SELECT name, capacity, confirmed, held, last_token, is_unique, version FROM reservation_resources",
                " WHERE name IN (",
                elements!($database, "$1"),
                ")"
            ),
            #[cfg(feature = "postgres")]
            find_resources: concat!(
                "SELECT name FROM reservation_resources WHERE name IN (",
                elements!($database, "$1"),
                ")"
            ),
            // One row at least, for the time.
            read_reservations: concat!(
                "SELECT ",
                now!($database),
                " + $2 AS now, key, lines, is_unique, state, token, first_token, expires_at, changed_at",
                " FROM (SELECT 1) AS one LEFT JOIN (SELECT * FROM reservations WHERE key IN (",
                elements!($database, "$1"),
                ")) AS known ON TRUE"
            ),
            read_overdue: concat!(
                "SELECT key, lines FROM reservations WHERE state = 'held' AND expires_at <= ",
                now_once!($database, " + $1"),
                " ORDER BY expires_at LIMIT $2"
            ),
            prune: concat!(
                "DELETE FROM reservations WHERE key IN (SELECT key FROM reservations",
                " WHERE state IN ('released', 'expired', 'returned') AND changed_at < ",
                now_once!($database, " + $1 - $2"),
                " ORDER BY changed_at LIMIT $3",
                $for_update,
                ")"
            ),
        }
    };
}

/// The statements of one database.
pub(super) struct Statements {
    /// `$1`: names, `$2`: keys of reservations whose resources are meant too. They are locked in the order of their names.
    pub(super) lock_resources: &'static str,
    /// `$1`: names, `$2`: keys, as above. Those that another transaction has locked are left out.
    #[cfg(feature = "postgres")]
    pub(super) lock_free_resources: &'static str,
    /// `$1`: names.
    #[cfg(feature = "redis")]
    pub(super) read_resources: &'static str,
    /// `$1`: names.
    #[cfg(feature = "postgres")]
    pub(super) find_resources: &'static str,
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
