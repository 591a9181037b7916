//! The booking service: it has the seats.

use saga_core::service::ServiceError;
use saga_core::{Service, StepContext, StepError, saga_compensation, saga_step};
use saga_sql::{SqlConn, SqlError, SqlStore};

use crate::contracts;
use crate::request::SeatRequest;

/// The service.
pub fn service<S: SqlStore>() -> Result<Service<S>, ServiceError> {
    Service::named("bookings").host::<create_booking>().build()
}

/// The tables. The index is the seat map: a seat has one booking at a time.
pub async fn create_tables(conn: &mut impl SqlConn) -> Result<(), SqlError> {
    conn.execute_batch(
        "CREATE TABLE IF NOT EXISTS bookings (
             number TEXT PRIMARY KEY,
             guest  TEXT NOT NULL,
             seat   TEXT NOT NULL,
             status TEXT NOT NULL CHECK (status IN ('booked', 'cancelled'))
         );
         CREATE UNIQUE INDEX IF NOT EXISTS seat_map ON bookings (seat) WHERE status = 'booked';",
    )
    .await
}

/// Books the seat, if it is free. The number of the booking is the key of the saga.
#[saga_step(implements = contracts::create_booking, compensate = cancel_booking)]
pub async fn create_booking(
    tx: &mut impl SqlConn,
    ctx: &StepContext,
    wanted: SeatRequest,
) -> Result<String, StepError> {
    let sql = "INSERT INTO bookings (number, guest, seat, status) VALUES ($1, $2, $3, 'booked')
               ON CONFLICT (seat) WHERE status = 'booked' DO NOTHING";
    match tx.execute(sql, &[&ctx.saga_key(), &wanted.user, &wanted.seat]).await? {
        0 => Err(StepError::reject(format!("seat {} is taken", wanted.seat))),
        _ => Ok(ctx.saga_key().to_owned()),
    }
}

/// Undoes `create_booking`: the seat is free again.
#[saga_compensation]
pub async fn cancel_booking(tx: &mut impl SqlConn, _wanted: SeatRequest, number: String) -> Result<(), StepError> {
    tx.execute("UPDATE bookings SET status = 'cancelled' WHERE number = $1", &[&number]).await?;
    Ok(())
}

/// The user for whom the seat is booked.
pub async fn guest_of<S: SqlStore>(store: &S, seat: &str) -> anyhow::Result<Option<String>> {
    let seat = seat.to_owned();
    let sql = "SELECT guest FROM bookings WHERE seat = $1 AND status = 'booked'";
    store.transaction(async move |conn: &mut S::Conn| anyhow::Ok(conn.query_opt(sql, &[&seat]).await?)).await
}

/// Books a seat outside all sagas.
pub async fn book_at_the_counter<S: SqlStore>(store: &S, seat: &str, guest: &str) -> anyhow::Result<()> {
    let (seat, guest) = (seat.to_owned(), guest.to_owned());
    let sql = "INSERT INTO bookings (number, guest, seat, status) VALUES ($1, $2, $1, 'booked')";
    store.transaction(async move |conn: &mut S::Conn| anyhow::Ok(conn.execute(sql, &[&seat, &guest]).await?)).await?;
    Ok(())
}
