//! Rows are read into the book's values, and what changed in the book is written.

use saga_core::store::Timestamp;
use saga_sql::{Dialect, Json, SqlConn};
use serde::{Deserialize, Serialize};

use super::work::WorkError;
use crate::book::{
    Book, Change, Changes, FencingToken, Line, Reservation, ReservationKey, Resource, ResourceName, State,
};

/// A row of `reservations`, or only the time where there is none.
#[derive(Debug, Deserialize)]
pub(super) struct ReservationRow {
    pub(super) now: i64,
    key: Option<ReservationKey>,
    lines: Option<Json<Vec<Line>>>,
    is_unique: Option<bool>,
    state: Option<State>,
    token: Option<u64>,
    first_token: Option<u64>,
    expires_at: Option<i64>,
    changed_at: Option<i64>,
}

impl ReservationRow {
    pub(super) fn reservation(self) -> Option<Reservation> {
        Some(Reservation {
            key: self.key?,
            lines: self.lines?.0,
            is_unique: self.is_unique?,
            state: self.state?,
            token: FencingToken(self.token?),
            first_token: FencingToken(self.first_token?),
            expires_at: Timestamp(self.expires_at?),
            changed_at: Timestamp(self.changed_at?),
        })
    }
}

/// A row of `reservation_resources`.
#[derive(Debug, Deserialize)]
pub(super) struct ResourceRow {
    name: ResourceName,
    capacity: u64,
    confirmed: u64,
    held: u64,
    last_token: u64,
    is_unique: bool,
    /// Not every statement reads it.
    #[cfg(feature = "redis")]
    #[serde(default)]
    version: u64,
}

#[cfg(feature = "redis")]
impl ResourceRow {
    pub(super) fn versioned(self) -> (Resource, u64) {
        let version = self.version;
        (self.into(), version)
    }
}

impl From<ResourceRow> for Resource {
    fn from(row: ResourceRow) -> Self {
        let ResourceRow { name, capacity, confirmed, held, last_token, is_unique, .. } = row;
        Self { name, capacity, confirmed, held, last_token: FencingToken(last_token), is_unique }
    }
}

const INSERT_RESOURCE: &str =
    "INSERT INTO reservation_resources (name, capacity, confirmed, held, last_token, is_unique)
    VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (name) DO NOTHING";
const UPDATE_RESOURCE: &str =
    "UPDATE reservation_resources SET capacity = $2, confirmed = $3, held = $4, last_token = $5,
        version = version + 1
    WHERE name = $1";
const INSERT_RESERVATION: &str = "INSERT INTO reservations
    (key, state, token, expires_at, changed_at, first_token, is_unique, lines)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (key) DO NOTHING";
const UPDATE_RESERVATION: &str = "UPDATE reservations SET state = $2, token = $3, expires_at = $4, changed_at = $5
    WHERE key = $1";

/// The same for several rows: `$1` is a list of them.
const INSERT_RESOURCES: &str =
    "INSERT INTO reservation_resources (name, capacity, confirmed, held, last_token, is_unique)
    SELECT * FROM jsonb_to_recordset($1) AS given (name TEXT COLLATE \"C\", capacity BIGINT, confirmed BIGINT,
        held BIGINT, last_token BIGINT, is_unique BOOLEAN)
    ORDER BY name ON CONFLICT (name) DO NOTHING";
const UPDATE_RESOURCES: &str = "UPDATE reservation_resources AS known
    SET capacity = given.capacity, confirmed = given.confirmed, held = given.held, last_token = given.last_token,
        version = known.version + 1
    FROM jsonb_to_recordset($1) AS given (name TEXT COLLATE \"C\", capacity BIGINT, confirmed BIGINT, held BIGINT,
        last_token BIGINT)
    WHERE known.name = given.name";
const INSERT_RESERVATIONS: &str = "INSERT INTO reservations
    (key, state, token, expires_at, changed_at, first_token, is_unique, lines)
    SELECT * FROM jsonb_to_recordset($1) AS given (key TEXT COLLATE \"C\", state TEXT, token BIGINT, expires_at BIGINT,
        changed_at BIGINT, first_token BIGINT, is_unique BOOLEAN, lines JSONB)
    ORDER BY key ON CONFLICT (key) DO NOTHING";
const UPDATE_RESERVATIONS: &str = "UPDATE reservations AS known
    SET state = given.state, token = given.token, expires_at = given.expires_at, changed_at = given.changed_at
    FROM jsonb_to_recordset($1) AS given (key TEXT COLLATE \"C\", state TEXT, token BIGINT, expires_at BIGINT,
        changed_at BIGINT)
    WHERE known.key = given.key";

/// Writes what changed, resources first and in the order of their names.
pub(super) async fn write<C: SqlConn>(conn: &mut C, changes: &Changes, book: &Book) -> Result<(), WorkError> {
    for (change, sql) in [(Change::Inserted, INSERT_RESOURCES), (Change::Updated, UPDATE_RESOURCES)] {
        let of_this_kind = changes.resources.iter().filter(|(_, found)| **found == change);
        let rows: Vec<_> = of_this_kind.filter_map(|(name, _)| book.resource(name)).collect();
        if is_written_at_once::<C, _>(&rows) {
            write_at_once(conn, sql, &rows).await?;
        } else {
            for resource in rows {
                write_resource(conn, resource, change).await?;
            }
        }
    }
    for (change, sql) in [(Change::Inserted, INSERT_RESERVATIONS), (Change::Updated, UPDATE_RESERVATIONS)] {
        let of_this_kind = changes.reservations.iter().filter(|(_, found)| **found == change);
        let rows: Vec<_> = of_this_kind.filter_map(|(key, _)| book.reservation(key)).collect();
        if is_written_at_once::<C, _>(&rows) {
            write_at_once(conn, sql, &rows).await?;
        } else {
            for reservation in rows {
                write_reservation(conn, reservation, change).await?;
            }
        }
    }
    Ok(())
}

/// A statement costs a way to PostgreSQL and back; SQLite is in this process.
fn is_written_at_once<C: SqlConn, R>(rows: &[R]) -> bool {
    C::DIALECT == Dialect::Postgres && rows.len() > 1
}

async fn write_at_once<C: SqlConn, R: Serialize + Sync>(
    conn: &mut C,
    sql: &'static str,
    rows: &[R],
) -> Result<(), WorkError> {
    let written = conn.execute(sql, &[&Json(rows)]).await?;
    // Another transaction inserted one of them at the same time.
    if usize::try_from(written) == Ok(rows.len()) { Ok(()) } else { Err(WorkError::Race) }
}

async fn write_resource<C: SqlConn>(conn: &mut C, resource: &Resource, change: Change) -> Result<(), WorkError> {
    let name = resource.name.as_str();
    let [capacity, confirmed, held, token] =
        [resource.capacity, resource.confirmed, resource.held, resource.last_token.0].map(integer);
    let written = match change {
        Change::Inserted => {
            let params: [&(dyn saga_sql::ToSql + Sync); 6] =
                [&name, &capacity, &confirmed, &held, &token, &resource.is_unique];
            conn.execute(INSERT_RESOURCE, &params).await?
        }
        Change::Updated => conn.execute(UPDATE_RESOURCE, &[&name, &capacity, &confirmed, &held, &token]).await?,
    };
    // Another transaction inserted it at the same time.
    if written == 1 { Ok(()) } else { Err(WorkError::Race) }
}

async fn write_reservation<C: SqlConn>(
    conn: &mut C,
    reservation: &Reservation,
    change: Change,
) -> Result<(), WorkError> {
    let (key, state) = (reservation.key.as_str(), reservation.state.as_str());
    let (expires_at, changed_at) = (reservation.expires_at.0, reservation.changed_at.0);
    let [token, first_token] = [reservation.token.0, reservation.first_token.0].map(integer);
    let written = match change {
        Change::Inserted => {
            let lines = Json(&reservation.lines);
            let params: [&(dyn saga_sql::ToSql + Sync); 8] =
                [&key, &state, &token, &expires_at, &changed_at, &first_token, &reservation.is_unique, &lines];
            conn.execute(INSERT_RESERVATION, &params).await?
        }
        Change::Updated => conn.execute(UPDATE_RESERVATION, &[&key, &state, &token, &expires_at, &changed_at]).await?,
    };
    if written == 1 { Ok(()) } else { Err(WorkError::Race) }
}

/// What the databases have for a whole number. The book has none above 2^53.
fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
