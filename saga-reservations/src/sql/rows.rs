//! Rows are read into the book's values, and what changed in the book is written.

use saga_core::store::Timestamp;
use saga_sql::{Dialect, Json, SqlConn};
use serde::Deserialize;

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

/// The same for many rows, on PostgreSQL: `$1` and `$2` are the new and the changed resources, `$3` and `$4` the new and the
/// changed reservations. The answer is how many were written. Rows are made in one order in every process: first the
/// resources, then the reservations, each by their names. The conditions with `+ 0` are explained at `elements!`.
const WRITE_ALL: &str = "WITH new_resources AS (
        INSERT INTO reservation_resources (name, capacity, confirmed, held, last_token, is_unique)
        SELECT * FROM jsonb_to_recordset($1) AS given (name TEXT COLLATE \"C\", capacity BIGINT, confirmed BIGINT,
            held BIGINT, last_token BIGINT, is_unique BOOLEAN)
        ORDER BY name ON CONFLICT (name) DO NOTHING RETURNING 1
    ), changed_resources AS (
        UPDATE reservation_resources AS known
        SET capacity = given.capacity, confirmed = given.confirmed, held = given.held, last_token = given.last_token,
            version = known.version + 1
        FROM jsonb_to_recordset($2) AS given (name TEXT COLLATE \"C\", capacity BIGINT, confirmed BIGINT, held BIGINT,
            last_token BIGINT)
        WHERE known.name = given.name AND given.held = given.held + 0 RETURNING 1
    ), resources AS (
        SELECT (SELECT count(*) FROM new_resources) + (SELECT count(*) FROM changed_resources) AS written
    ), new_reservations AS (
        INSERT INTO reservations (key, state, token, expires_at, changed_at, first_token, is_unique, lines)
        SELECT * FROM jsonb_to_recordset($3) AS given (key TEXT COLLATE \"C\", state TEXT, token BIGINT, expires_at BIGINT,
            changed_at BIGINT, first_token BIGINT, is_unique BOOLEAN, lines JSONB)
        WHERE (SELECT written FROM resources) >= 0
        ORDER BY key ON CONFLICT (key) DO NOTHING RETURNING 1
    ), changed_reservations AS (
        UPDATE reservations AS known
        SET state = given.state, token = given.token, expires_at = given.expires_at, changed_at = given.changed_at
        FROM jsonb_to_recordset($4) AS given (key TEXT COLLATE \"C\", state TEXT, token BIGINT, expires_at BIGINT,
            changed_at BIGINT)
        WHERE known.key = given.key AND given.token = given.token + 0 RETURNING 1
    )
    SELECT (SELECT written FROM resources) + (SELECT count(*) FROM new_reservations)
        + (SELECT count(*) FROM changed_reservations)";

/// Writes what changed, resources first and in the order of their names.
pub(super) async fn write<C: SqlConn>(conn: &mut C, changes: &Changes, book: &Book) -> Result<(), WorkError> {
    let resources = |kind: Change| -> Vec<&Resource> {
        let of_this_kind = changes.resources.iter().filter(|(_, change)| **change == kind);
        of_this_kind.filter_map(|(name, _)| book.resource(name)).collect()
    };
    let reservations = |kind: Change| -> Vec<&Reservation> {
        let of_this_kind = changes.reservations.iter().filter(|(_, change)| **change == kind);
        of_this_kind.filter_map(|(key, _)| book.reservation(key)).collect()
    };
    // A statement costs a way to PostgreSQL and back; SQLite is in this process.
    if C::DIALECT == Dialect::Postgres && changes.len() > 1 {
        let (new_resources, known_resources) = (Json(resources(Change::Inserted)), Json(resources(Change::Updated)));
        let (new, known) = (Json(reservations(Change::Inserted)), Json(reservations(Change::Updated)));
        let written: i64 = conn.query_one(WRITE_ALL, &[&new_resources, &known_resources, &new, &known]).await?;
        return expect_written(u64::try_from(written).unwrap_or(0), changes.len());
    }
    for change in [Change::Inserted, Change::Updated] {
        for resource in resources(change) {
            write_resource(conn, resource, change).await?;
        }
    }
    for change in [Change::Inserted, Change::Updated] {
        for reservation in reservations(change) {
            write_reservation(conn, reservation, change).await?;
        }
    }
    Ok(())
}

/// Where a row was not written, another transaction inserted it at the same time.
fn expect_written(written: u64, expected: usize) -> Result<(), WorkError> {
    if usize::try_from(written) == Ok(expected) { Ok(()) } else { Err(WorkError::Race) }
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
    expect_written(written, 1)
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
    expect_written(written, 1)
}

/// What the databases have for a whole number. The book has none above 2^53.
fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
