//! The ready-made steps in a saga on SQLite in virtual time, over reservations that lose answers.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod interposed;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use saga_core::memory::MemoryStore;
use saga_core::{Outcome, Output, Runtime, Saga, StepError, saga_step};
use saga_reservations::{
    Action, Late, MemoryReservations, Operation, Reason, Refusal, Reservation, ReservationKey, Reservations,
    ReservationsClient, ReservationsError, Reserve, ResourceName, SqlReservations, State, steps as reservations,
};
use saga_sqlite::{SqliteOptions, SqliteStore};
use saga_testkit::VirtualTime;
use serde::{Deserialize, Serialize};

use crate::interposed::{Between, Interposed};

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Trip {
    seats: u32,
    cents: u64,
}

/// Refuses what is too expensive.
#[saga_step(no_compensation)]
async fn charge_card(trip: Trip) -> Result<(), StepError> {
    if trip.cents > 50_000 { Err(StepError::reject("too expensive")) } else { Ok(()) }
}

/// Refuses one seat: the trip is only for two.
#[saga_step(no_compensation)]
async fn print_ticket(trip: Trip) -> Result<(), StepError> {
    if trip.seats == 1 { Err(StepError::reject("the printer is for pairs")) } else { Ok(()) }
}

/// With a pivot, a confirmed trip only goes forward.
fn book_trip(has_pivot: bool) -> Saga<SqliteStore, Trip> {
    let saga = Saga::named(if has_pivot { "book-trip" } else { "book-trip-for-two" })
        .input::<Trip>()
        .step_from::<reservations::reserve, _>(|trip: &Trip| {
            Reserve::of("seat", trip.seats).and("bag", trip.seats).ttl_mins(15)
        })
        .step::<charge_card>()
        .step_from::<reservations::confirm, _>(|_: &Trip, Output(held): Output<reservations::reserve>| held.clone());
    if has_pivot { saga.pivot().build().unwrap() } else { saga.step::<print_ticket>().build().unwrap() }
}

/// Reservations whose answers get lost: of every third operation the effect, of the next one only the answer.
#[derive(Clone)]
struct Lossy {
    inner: SqlReservations,
    calls: Arc<AtomicU32>,
}

#[derive(Debug, thiserror::Error)]
#[error("the connection broke")]
struct Broke;

#[async_trait]
impl Between for Lossy {
    fn inner(&self) -> &dyn Reservations {
        &self.inner
    }

    async fn perform(&self, operation: Operation) -> Result<Reservation, ReservationsError> {
        let lost = || Err(ReservationsError::Unavailable { operation: "reserve", source: Box::new(Broke) });
        match self.calls.fetch_add(1, Ordering::SeqCst) % 3 {
            0 => lost(),
            1 => {
                // The outcome is lost too, if it is a refusal.
                _ = self.inner.perform(operation).await;
                lost()
            }
            _ => self.inner.perform(operation).await,
        }
    }
}

struct Agency {
    client: ReservationsClient,
    store: SqlReservations,
    runtime: Runtime<SqliteStore>,
    sagas: [Saga<SqliteStore, Trip>; 2],
    _folder: tempfile::TempDir,
}

impl Agency {
    async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = SqlReservations::open_sqlite(folder.path().join("reservations.db")).await.unwrap();
        let client = ReservationsClient::new(Interposed(Lossy { inner: store.clone(), calls: Arc::default() }));
        client.set_capacity("seat", 4).await.unwrap();
        client.set_capacity("bag", 100).await.unwrap();
        let sagas = [book_trip(true), book_trip(false)];
        // After a lost answer the runtime waits before it decides that nothing was done.
        let time = VirtualTime::new();
        let options = SqliteOptions::new(folder.path().join("sagas.db")).test_clock(time.environment());
        let sagas_store = SqliteStore::open_with(options).await.unwrap();
        let runtime = Runtime::builder(sagas_store).environment(time.environment());
        let runtime = runtime.saga(&sagas[0]).saga(&sagas[1]).state(client.clone());
        let runtime = runtime.start().await.unwrap();
        Self { client, store, runtime, sagas, _folder: folder }
    }

    async fn book(&self, saga: usize, key: &str, seats: u32, cents: u64) -> Outcome {
        let started = self.runtime.start(&self.sagas[saga], key, Trip { seats, cents }).await.unwrap();
        started.outcome().await.unwrap()
    }

    async fn seats(&self) -> (u64, u64) {
        let seats = self.client.resource("seat").await.unwrap().unwrap();
        let bags = self.client.resource("bag").await.unwrap().unwrap();
        assert_eq!((seats.confirmed, seats.held), (bags.confirmed, bags.held));
        (seats.confirmed, seats.held)
    }

    async fn state(&self, key: &str) -> Option<State> {
        let found = self.client.find(&ReservationKey::new(key).unwrap()).await.unwrap();
        found.map(|found| found.state)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trip_is_booked_or_nothing_is_taken() {
    let agency = Agency::open().await;
    let booked = agency.book(0, "trip-1", 3, 10_000).await;
    assert!(matches!(booked, Outcome::Completed { .. }), "{booked:?}");
    assert_eq!(agency.seats().await, (3, 0));

    let Outcome::Compensated { reason, .. } = agency.book(0, "trip-2", 2, 10_000).await else {
        panic!("there is one seat left");
    };
    let refusal: Refusal = reason.details().unwrap();
    assert_eq!(refusal.reason(), Reason::Insufficient);

    // The step behind `reserve` refuses, so the seat is released.
    let refused = agency.book(0, "trip-3", 1, 90_000).await;
    assert!(matches!(refused, Outcome::Compensated { .. }), "{refused:?}");
    assert_eq!((agency.seats().await, agency.state("trip-3:reserve").await), ((3, 0), Some(State::Released)));

    // The step behind `confirm` refuses, so the seat is given back, and there is no hold to release.
    let refused = agency.book(1, "trip-4", 1, 10_000).await;
    assert!(matches!(refused, Outcome::Compensated { .. }), "{refused:?}");
    assert_eq!((agency.seats().await, agency.state("trip-4:reserve").await), ((3, 0), Some(State::Returned)));
    agency.runtime.shutdown().await;
}

/// The card takes longer than the hold lasts. Nothing else wanted the seats.
#[tokio::test(flavor = "multi_thread")]
async fn a_late_confirmation_of_a_step_takes_the_seats_again() {
    let agency = Agency::open().await;
    let held = agency.store.perform(Operation::new(
        ReservationKey::new("slow").unwrap(),
        Action::Reserve(Reserve::of("seat", 2).and("bag", 2).ttl_secs(60)),
    ));
    let held = held.await.unwrap();
    agency.store.clock_shift().fetch_add(120_000_000, Ordering::SeqCst);
    let refused = agency
        .store
        .perform(Operation::new(held.key.clone(), Action::Confirm { token: held.token, late: Late::Refuse }));
    assert_eq!(refused.await.unwrap_err().refusal().unwrap().reason(), Reason::Expired);
    let mut confirmed = Err(StepError::reject("not called yet"));
    for _ in 0..3 {
        confirmed = reservations::confirm(held.clone(), saga_core::State(agency.client.clone())).await;
    }
    let confirmed = confirmed.unwrap();
    assert!(confirmed.token > held.token);
    assert_eq!(agency.seats().await, (2, 0));
    for _ in 0..3 {
        _ = reservations::give_back(held.clone(), saga_core::State(agency.client.clone())).await;
    }
    assert_eq!(agency.seats().await, (0, 0));
    agency.runtime.shutdown().await;
}

/// A hold and what the step writes are one commit.
#[tokio::test(flavor = "multi_thread")]
async fn a_step_reserves_in_its_own_transaction() {
    use saga_core::{IntoStepError, StepContext};
    use saga_reservations::{create_tables, perform_in};
    use saga_sql::{SqlConn, SqlStore as _};

    #[saga_step(no_compensation)]
    async fn seat_in_transaction(tx: &mut impl SqlConn, ctx: &StepContext, seats: u32) -> Result<u64, StepError> {
        let reserve = Action::Reserve(Reserve::of("seat", seats));
        let operation = Operation::new(ReservationKey::new(ctx.key())?, reserve);
        let held = perform_in(tx, &operation).await.map_err(IntoStepError::into_step_error)?;
        tx.execute("INSERT INTO bookings VALUES ($1, $2)", &[&ctx.saga_key(), &i64::try_from(held.token.0)?]).await?;
        if seats == 2 { Err(StepError::reject("no pairs")) } else { Ok(held.token.0) }
    }

    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("shop.db")).await.unwrap();
    let created = store.transaction(async |conn| -> anyhow::Result<()> {
        create_tables(conn).await?;
        conn.execute_batch("CREATE TABLE bookings (saga TEXT PRIMARY KEY, token BIGINT NOT NULL)").await?;
        Ok(())
    });
    created.await.unwrap();
    let shared = SqlReservations::on_sqlite(store.clone()).await.unwrap();
    shared.set_capacity(&ResourceName::new("seat").unwrap(), 4).await.unwrap();
    let saga: Saga<SqliteStore, u32> =
        Saga::named("seat").input::<u32>().step::<seat_in_transaction>().build().unwrap();
    let runtime = Runtime::builder(store.clone()).saga(&saga).start().await.unwrap();
    for (key, seats, completes) in [("one", 3, true), ("pair", 2, false), ("rest", 1, true), ("more", 1, false)] {
        let outcome = runtime.start(&saga, key, seats).await.unwrap().outcome().await.unwrap();
        assert_eq!(matches!(outcome, Outcome::Completed { .. }), completes, "{key}: {outcome:?}");
    }
    runtime.shutdown().await;
    let seats = shared.resource(&ResourceName::new("seat").unwrap()).await.unwrap().unwrap();
    assert_eq!(seats.held, 4);
    let bookings = store.transaction(async |conn| -> anyhow::Result<i64> {
        Ok(conn.query_one("SELECT count(*) FROM bookings", &[]).await?)
    });
    assert_eq!(bookings.await.unwrap(), 2);
}

/// The hold that is over is not among the oldest ones, and those are of another resource.
#[tokio::test]
async fn a_transaction_ends_as_many_holds_as_its_request_needs() {
    use saga_reservations::perform_in;
    use saga_sql::{SqlConn as _, SqlStore as _};

    fn reserve(key: impl Into<String>, request: Reserve) -> Operation {
        Operation::new(ReservationKey::new(key).unwrap(), Action::Reserve(request))
    }

    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("shop.db")).await.unwrap();
    let shared = SqlReservations::on_sqlite(store.clone()).await.unwrap();
    for (name, capacity) in [("bag", 200), ("seat", 1)] {
        shared.set_capacity(&ResourceName::new(name).unwrap(), capacity).await.unwrap();
    }
    let left_behind = store.transaction(async |conn| -> anyhow::Result<()> {
        for number in 0..130 {
            perform_in(conn, &reserve(format!("bag-{number}"), Reserve::of("bag", 1))).await?;
        }
        perform_in(conn, &reserve("seat-1", Reserve::of("seat", 1))).await?;
        conn.execute("UPDATE reservations SET expires_at = CASE key WHEN 'seat-1' THEN 2 ELSE 1 END", &[]).await?;
        Ok(())
    });
    left_behind.await.unwrap();
    let asked = store.transaction(async |conn| -> anyhow::Result<Reason> {
        perform_in(conn, &reserve("seat-2", Reserve::of("seat", 1))).await?;
        let refused = perform_in(conn, &reserve("seat-3", Reserve::of("seat", 1))).await.unwrap_err();
        Ok(refused.refusal().unwrap().reason())
    });
    assert_eq!(asked.await.unwrap(), Reason::Insufficient);
    let seats = shared.resource(&ResourceName::new("seat").unwrap()).await.unwrap().unwrap();
    assert_eq!(seats.held, 1);
}

/// An invalid key is as invalid the next time.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_an_invalid_key_is_rejected() {
    let client = ReservationsClient::new(MemoryReservations::current().unwrap());
    client.set_capacity("seat", 4).await.unwrap();
    let saga: Saga<MemoryStore, ()> = Saga::named("no-key")
        .input::<()>()
        .step_from::<reservations::reserve, _>(|(): &()| Reserve::of("seat", 1).key(""))
        .build()
        .unwrap();
    let runtime = Runtime::builder(MemoryStore::new()).saga(&saga).state(client).start().await.unwrap();
    let outcome = runtime.start(&saga, "trip-1", ()).await.unwrap().outcome().await.unwrap();
    let Outcome::Compensated { reason, .. } = outcome else { panic!("{outcome}") };
    assert_eq!(reason.details::<Refusal>().unwrap().reason(), Reason::Invalid);
    runtime.shutdown().await;
}
