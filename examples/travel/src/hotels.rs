//! The hotels: a service with a database of its own, which hosts one step of a trip.

use saga_core::service::ServiceError;
use saga_core::{Service, StepContext, StepError, saga_compensation, saga_step};
use saga_sql::{SqlConn, SqlError, SqlStore};
use serde::{Deserialize, Serialize};

use crate::trip::Stay;

const NIGHT_CENTS: i64 = 9_000;

/// What the services know of each other. In a company it is a crate that both use.
pub mod contract {
    use saga_core::{StepError, saga_step};

    use super::Room;
    use crate::trip::Stay;

    /// Books a room.
    #[saga_step(service = "hotels", compensated)]
    pub async fn book_room(stay: Stay) -> Result<Room, StepError>;
}

/// A booked room.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Room {
    pub number: String,
    pub cents: i64,
}

/// Books a room, if the city has one.
#[saga_step(implements = contract::book_room, compensate = cancel_room)]
pub async fn book_room(tx: &mut impl SqlConn, ctx: &StepContext, stay: Stay) -> Result<Room, StepError> {
    // Until this transaction ends, others wait here for the city, so that no two take the same room.
    let free = "UPDATE hotels SET free = free - 1 WHERE city = $1 AND free > 0";
    if tx.execute(free, &[&stay.city]).await? == 0 {
        return Err(StepError::reject(format!("no room is free in {}", stay.city)));
    }
    let sql = "UPDATE numbered_rooms SET booking = $1 WHERE city = $2 AND number =
                   (SELECT min(number) FROM numbered_rooms WHERE city = $2 AND booking IS NULL)
               RETURNING number";
    let number: i64 = tx.query_one(sql, &[&ctx.key(), &stay.city]).await?;
    Ok(Room { number: format!("{} {number}", stay.city), cents: NIGHT_CENTS * i64::from(stay.nights) })
}

/// Undoes `book_room`.
#[saga_compensation]
pub async fn cancel_room(tx: &mut impl SqlConn, ctx: &StepContext, stay: Stay) -> Result<(), StepError> {
    tx.execute("UPDATE numbered_rooms SET booking = NULL WHERE booking = $1", &[&ctx.original_key()]).await?;
    tx.execute("UPDATE hotels SET free = free + 1 WHERE city = $1", &[&stay.city]).await?;
    Ok(())
}

/// The service.
pub fn hotels<S: SqlStore>() -> Result<Service<S>, ServiceError> {
    Service::named("hotels").host::<book_room>().build()
}

/// The tables of the service, and the hotels of two cities.
pub async fn create_tables(conn: &mut impl SqlConn) -> Result<(), SqlError> {
    conn.execute_batch(
        "CREATE TABLE IF NOT EXISTS hotels (city TEXT PRIMARY KEY, free BIGINT NOT NULL CHECK (free >= 0));
         CREATE TABLE IF NOT EXISTS numbered_rooms (
             city TEXT NOT NULL, number BIGINT NOT NULL, booking TEXT UNIQUE, PRIMARY KEY (city, number)
         );
         INSERT INTO hotels VALUES ('Oslo', 100), ('Rome', 1) ON CONFLICT (city) DO NOTHING;
         WITH RECURSIVE numbers (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < 100)
         INSERT INTO numbered_rooms (city, number)
             SELECT 'Oslo', number FROM numbers UNION ALL SELECT 'Rome', 1 WHERE true ON CONFLICT (city, number) DO NOTHING;",
    )
    .await
}
