//! The steps of a trip in our own database and at the airlines.

use saga_core::step::Resolved;
use saga_core::{
    Output, Outputs, Signaled, State, StepContext, StepError, saga_compensation, saga_resolution, saga_step,
};
use saga_sql::{SqlConn, SqlError};

use crate::cars::CarRental;
use crate::hotels;
use crate::providers::{FLIGHTS, MAILS, Providers, Ticket};
use crate::trip::{Approval, Itinerary, Leg, Trip};

/// The tables of the bookings, with a traveller and a car.
pub async fn create_tables(conn: &mut impl SqlConn) -> Result<(), SqlError> {
    conn.execute_batch(
        "CREATE TABLE IF NOT EXISTS travellers (
             name         TEXT   PRIMARY KEY,
             credit_cents BIGINT NOT NULL CHECK (credit_cents >= 0)
         );
         CREATE TABLE IF NOT EXISTS bookings (
             trip      TEXT PRIMARY KEY,
             traveller TEXT NOT NULL,
             status    TEXT NOT NULL CHECK (status IN ('open', 'confirmed', 'given up')),
             reason    TEXT
         );
         CREATE TABLE IF NOT EXISTS cars (plate TEXT PRIMARY KEY, city TEXT NOT NULL, trip TEXT);
         INSERT INTO travellers VALUES ('Ada', 1000000) ON CONFLICT (name) DO NOTHING;
         INSERT INTO cars VALUES ('OS 4711', 'Oslo', NULL) ON CONFLICT (plate) DO NOTHING;",
    )
    .await
}

/// Writes the booking down, so that the traveller can see it.
#[saga_step(compensate = give_up_booking)]
pub async fn open_booking(tx: &mut impl SqlConn, ctx: &StepContext, trip: Trip) -> Result<(), StepError> {
    let sql = "INSERT INTO bookings (trip, traveller, status) VALUES ($1, $2, 'open')";
    tx.execute(sql, &[&ctx.saga_key(), &trip.traveller]).await?;
    Ok(())
}

/// Undoes `open_booking`: the booking stays, with the reason.
#[saga_compensation]
pub async fn give_up_booking(tx: &mut impl SqlConn, ctx: &StepContext, _trip: Trip) -> Result<(), StepError> {
    let reason = ctx.failure().map_or("cancelled", |failure| &failure.message);
    let sql = "UPDATE bookings SET status = 'given up', reason = $2 WHERE trip = $1";
    tx.execute(sql, &[&ctx.saga_key(), &reason]).await?;
    Ok(())
}

/// Takes the whole budget from the traveller's credit; what the trip does not cost is given back when it is confirmed.
#[saga_step(compensate = release_credit)]
pub async fn hold_credit(tx: &mut impl SqlConn, trip: Trip) -> Result<(), StepError> {
    let sql = "UPDATE travellers SET credit_cents = credit_cents - $2 WHERE name = $1 AND credit_cents >= $2";
    match tx.execute(sql, &[&trip.traveller, &trip.budget_cents]).await? {
        0 => Err(StepError::reject(format!("{} has not enough credit", trip.traveller))),
        _ => Ok(()),
    }
}

/// Undoes `hold_credit`.
#[saga_compensation]
pub async fn release_credit(tx: &mut impl SqlConn, trip: Trip) -> Result<(), StepError> {
    give_credit(tx, &trip.traveller, trip.budget_cents).await?;
    Ok(())
}

async fn give_credit(tx: &mut impl SqlConn, traveller: &str, cents: i64) -> Result<u64, SqlError> {
    let sql = "UPDATE travellers SET credit_cents = credit_cents + $2 WHERE name = $1";
    tx.execute(sql, &[&traveller, &cents]).await
}

/// Goes on if the manager has approved the trip.
#[saga_step(no_compensation)]
pub async fn check_approval(_trip: Trip, Signaled(approval): Signaled<Approval>) -> Result<(), StepError> {
    if approval.approved { Ok(()) } else { Err(StepError::reject(format!("not approved by {}", approval.by))) }
}

/// Books a flight at the airline. After a time-out the airline is asked whether it has booked it.
#[saga_step(compensate = cancel_flight, resolve = find_flight, timeout = "2s", retry(base = "100ms"))]
pub async fn book_flight(ctx: &StepContext, leg: Leg, State(outside): State<Providers>) -> Result<Ticket, StepError> {
    outside.book_flight(ctx, &leg).await
}

/// Asks the airline what became of a booking that was not answered.
#[saga_resolution]
pub async fn find_flight(
    ctx: &StepContext,
    _leg: Leg,
    State(outside): State<Providers>,
) -> Result<Resolved<Ticket>, StepError> {
    Ok(outside.find_flight(ctx).await?.map_or(Resolved::NotDone, Resolved::Done))
}

/// Undoes `book_flight`. Without a ticket it is unknown whether there is one, so the airline gets the key of the booking.
#[saga_compensation]
pub async fn cancel_flight(
    ctx: &StepContext,
    _leg: Leg,
    _ticket: Option<Ticket>,
    State(outside): State<Providers>,
) -> Result<(), StepError> {
    outside.cancel(FLIGHTS, ctx).await
}

/// Confirms the trip if it costs no more than its budget. From here on it only goes forward.
#[saga_step]
pub async fn confirm_booking(
    tx: &mut impl SqlConn,
    ctx: &StepContext,
    trip: Trip,
    Outputs(tickets): Outputs<book_flight>,
    Output(room): Output<hotels::contract::book_room>,
    car: Option<Output<CarRental>>,
) -> Result<Itinerary, StepError> {
    let cost_cents = tickets.iter().map(|ticket| ticket.cents).sum::<i64>() + room.cents;
    if cost_cents > trip.budget_cents {
        let problem = format!("the trip costs {cost_cents} cents, and the budget is {}", trip.budget_cents);
        return Err(StepError::reject(problem));
    }
    give_credit(tx, &trip.traveller, trip.budget_cents - cost_cents).await?;
    tx.execute("UPDATE bookings SET status = 'confirmed' WHERE trip = $1", &[&ctx.saga_key()]).await?;
    let tickets = tickets.into_iter().map(|ticket| ticket.number).collect();
    Ok(Itinerary { tickets, room: room.number, car: car.map(|Output(plate)| plate), cost_cents })
}

/// Sends the itinerary. The mail has the key as its `Message-ID`, so that a repeated one is not shown twice.
#[saga_step(no_compensation)]
pub async fn send_itinerary(ctx: &StepContext, _trip: Trip, State(outside): State<Providers>) -> Result<(), StepError> {
    outside.book(MAILS, ctx).await
}
