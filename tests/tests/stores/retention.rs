//! Retention on every store: tombstones, deletion, sub-sagas, and the archive in a table (G13).

use std::time::Duration;

use saga_core::store::Status;
use saga_core::{Key, Outcome, Output, Retention, Runtime, Saga, StepError, SubSaga, Tenant, saga_step};
use saga_postgres::{PostgresStore, TableArchive, sqlx};
use saga_testkit::VirtualTime;
use saga_tests::{Books, Kept, on_every_clock};

use crate::pieces::take_out;

const DAY: Duration = Duration::from_hours(24);
/// The maintenance task looks at least so often.
const PASS: Duration = Duration::from_mins(11);

/// Nobody wants 13 pieces.
#[saga_step(no_compensation)]
async fn approve(pieces: u32) -> Result<(), StepError> {
    if pieces == 13 { Err(StepError::reject("nobody wants them")) } else { Ok(()) }
}

struct Packing;

impl SubSaga for Packing {
    const NAME: &'static str = "packing";
    type Input = u32;
    type Output = u32;
}

#[saga_step(no_compensation)]
async fn bill<S: Books>(tx: &mut S::Conn, _pieces: u32, Output(packed): Output<Packing>) -> Result<(), StepError> {
    S::add(tx, "billed", i64::from(packed)).await?;
    Ok(())
}

struct Test<S: Books> {
    time: VirtualTime,
    store: S,
    saga: Saga<S, u32>,
    runtime: Runtime<S>,
    _kept: Kept,
}

impl<S: Books> Test<S> {
    async fn of(saga: Saga<S, u32>) -> Self {
        let time = VirtualTime::new();
        let (store, kept) = S::on_clock(time.environment()).await;
        let runtime = Runtime::builder(store.clone()).environment(time.environment()).saga(&saga);
        let runtime = runtime.start().await.unwrap();
        Self { time, store, saga, runtime, _kept: kept }
    }

    async fn run(&self, key: &str, pieces: u32) -> Outcome {
        self.runtime.start(&self.saga, key, pieces).await.unwrap().outcome().await.unwrap()
    }

    async fn age(&self, key: &str) -> &'static str {
        let row = self.store.saga(&Tenant::default(), &Key::from_stored(key).unwrap()).await.unwrap();
        match row {
            None => "deleted",
            Some(row) if row.is_tombstone() => "tombstone",
            Some(_) => "full",
        }
    }
}

async fn an_ended_saga_becomes_a_tombstone_and_then_is_deleted<S: Books>() {
    let retention = Retention::days(3).compensated_days(5).key_days(7);
    let saga = Saga::named("order").input().retention(retention).step::<take_out>().step::<approve>();
    let test = Test::<S>::of(saga.build().unwrap()).await;
    test.run("o-1", 1).await;
    test.run("o-13", 13).await;
    test.time.advance(3 * DAY + PASS).await;
    assert_eq!([test.age("o-1").await, test.age("o-13").await], ["tombstone", "full"]);
    let again = test.runtime.start(&test.saga, "o-1", 1).await.unwrap();
    assert!(again.already_started());
    assert!(matches!(again.outcome().await.unwrap(), Outcome::Tombstone { status: Status::Completed, .. }));
    test.time.advance(2 * DAY).await;
    assert_eq!([test.age("o-1").await, test.age("o-13").await], ["tombstone", "tombstone"]);
    test.time.advance(2 * DAY + PASS).await;
    assert_eq!([test.age("o-1").await, test.age("o-13").await], ["deleted", "deleted"]);
    assert!(!test.runtime.start(&test.saga, "o-1", 2).await.unwrap().already_started());
    test.runtime.shutdown().await;
}

async fn a_sub_saga_goes_with_its_outer_saga<S: Books>() {
    let packing = Saga::named("packing").input::<u32>().step::<take_out>().returns::<take_out>().build().unwrap();
    let saga = Saga::named("order").input().retention(Retention::days(2).key_days(3));
    let test = Test::<S>::of(saga.sub_saga::<Packing>(&packing).step::<bill>().build().unwrap()).await;
    test.run("o-1", 1).await;
    test.time.advance(2 * DAY + PASS).await;
    assert_eq!([test.age("o-1").await, test.age("o-1>packing").await], ["tombstone", "deleted"]);
    test.time.advance(DAY + PASS).await;
    assert_eq!(test.age("o-1").await, "deleted");
    test.runtime.shutdown().await;
}

on_every_clock! { an_ended_saga_becomes_a_tombstone_and_then_is_deleted, a_sub_saga_goes_with_its_outer_saga }

/// What the table keeps of a saga: its partition, and its content.
async fn archived(store: &PostgresStore) -> Vec<(String, String)> {
    let sql = "SELECT tableoid::regclass::text, content::text FROM saga.archived_sagas ORDER BY id";
    let rows = store.write(async |conn| -> Result<_, Box<dyn std::error::Error + Send + Sync>> {
        Ok(sqlx::query_as(sql).fetch_all(&mut *conn).await?)
    });
    rows.await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sagas_are_kept_in_a_table_by_month() {
    let time = VirtualTime::new();
    let (store, _kept) = PostgresStore::on_clock(time.environment()).await;
    let saga: Saga<PostgresStore, u32> = Saga::named("order")
        .input()
        .retention(Retention::days(1))
        .step::<take_out>()
        .step::<approve>()
        .build()
        .unwrap();
    let runtime = Runtime::builder(store.clone()).environment(time.environment()).saga(&saga);
    let runtime = runtime.archive(TableArchive::new(&store)).start().await.unwrap();
    for day in 0..40 {
        runtime.start(&saga, format!("o-{day}"), 1).await.unwrap().outcome().await.unwrap();
        time.advance(DAY).await;
    }
    time.advance(2 * DAY).await;
    let kept = archived(&store).await;
    let months: Vec<usize> = ["2025_01", "2025_02"]
        .map(|month| kept.iter().filter(|(partition, _)| partition.ends_with(month)).count())
        .into();
    assert_eq!(months, [31, 9]);
    assert!(kept[3].1.contains(r#""key":"o-3""#), "{}", kept[3].1);
    runtime.shutdown().await;
}
