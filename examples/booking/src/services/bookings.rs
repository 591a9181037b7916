//! The booking service: it knows for whom a seat is booked.

use saga_core::service::ServiceError;
use saga_core::{Service, StepContext, StepError, saga_compensation, saga_step};
use saga_reservations::FencingToken;
use saga_sql::{SqlConn, SqlError, SqlStore};

use crate::contracts;
use crate::request::SeatRequest;
use crate::services::seats::SeatMap;

/// The service.
pub fn service<S: SqlStore>() -> Result<Service<S>, ServiceError> {
    Service::named("bookings").host::<create_booking>().build()
}

/// The tables. That a seat has one booking at a time is the matter of the seat map.
pub async fn create_tables(conn: &mut impl SqlConn) -> Result<(), SqlError> {
    conn.execute_batch(
        "CREATE TABLE IF NOT EXISTS bookings (
             number TEXT PRIMARY KEY,
             guest  TEXT NOT NULL,
             seat   TEXT NOT NULL,
             token  BIGINT NOT NULL,
             status TEXT NOT NULL CHECK (status IN ('booked', 'cancelled'))
         );
         CREATE INDEX IF NOT EXISTS bookings_of_a_seat ON bookings (seat, token);",
    )
    .await
}

/// Books the seat. The number of the booking is the key of the saga.
///
/// A request whose reservation has ended comes too late: the seat may be another's. Its token is then lower than that of the
/// reservation behind it.
#[saga_step(implements = contracts::create_booking, compensate = cancel_booking)]
pub async fn create_booking(
    tx: &mut impl SqlConn,
    ctx: &StepContext,
    wanted: SeatRequest,
) -> Result<String, StepError> {
    let sql = "SELECT count(*) FROM bookings WHERE seat = $1 AND token > $2";
    let token = i64::try_from(wanted.token.0)?;
    let later: i64 = tx.query_one(sql, &[&wanted.seat, &token]).await?;
    if later > 0 {
        return Err(StepError::reject(format!("seat {} was reserved again since", wanted.seat)));
    }
    let sql = "INSERT INTO bookings (number, guest, seat, token, status) VALUES ($1, $2, $3, $4, 'booked')";
    tx.execute(sql, &[&ctx.saga_key(), &wanted.user, &wanted.seat, &token]).await?;
    Ok(ctx.saga_key().to_owned())
}

/// Undoes `create_booking`. The seat is free again when its reservation is released behind this.
#[saga_compensation]
pub async fn cancel_booking(tx: &mut impl SqlConn, _wanted: SeatRequest, number: String) -> Result<(), StepError> {
    tx.execute("UPDATE bookings SET status = 'cancelled' WHERE number = $1", &[&number]).await?;
    Ok(())
}

/// The user for whom the seat is booked.
pub async fn guest_of<S: SqlStore>(store: &S, seat: &str) -> anyhow::Result<Option<String>> {
    let seat = seat.to_owned();
    let sql = "SELECT guest FROM bookings WHERE seat = $1 AND status = 'booked' ORDER BY token DESC LIMIT 1";
    store.transaction(async move |conn: &mut S::Conn| anyhow::Ok(conn.query_opt(sql, &[&seat]).await?)).await
}

/// Books a seat outside all sagas.
pub async fn book_at_the_counter<S: SqlStore>(
    store: &S,
    seats: &SeatMap,
    seat: &str,
    guest: &str,
) -> anyhow::Result<()> {
    let token = seats.take(seat).await?;
    note(store, seat, guest, token, "booked").await
}

/// What is left of a booking that was cancelled.
pub async fn note_cancelled<S: SqlStore>(
    store: &S,
    seat: &str,
    guest: &str,
    token: FencingToken,
) -> anyhow::Result<()> {
    note(store, seat, guest, token, "cancelled").await
}

async fn note<S: SqlStore>(
    store: &S,
    seat: &str,
    guest: &str,
    token: FencingToken,
    status: &'static str,
) -> anyhow::Result<()> {
    let (number, seat, guest, token) =
        (format!("counter-{seat}"), seat.to_owned(), guest.to_owned(), i64::try_from(token.0)?);
    let sql = "INSERT INTO bookings (number, guest, seat, token, status) VALUES ($1, $2, $3, $4, $5)";
    let noted = store.transaction(async move |conn: &mut S::Conn| {
        anyhow::Ok(conn.execute(sql, &[&number, &guest, &seat, &token, &status]).await?)
    });
    noted.await?;
    Ok(())
}
