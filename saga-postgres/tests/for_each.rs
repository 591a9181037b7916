//! A step that is done for each item of a list, on PostgreSQL.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use saga_core::store::{Records, Sagas};
use saga_core::{
    Each, Key, Outcome, Output, Runtime, Saga, StepContext, StepError, Tenant, saga_compensation, saga_step,
};
use saga_postgres::PostgresStore;
use serde::{Deserialize, Serialize};
use sqlx::{Executor as _, PgConnection};
use support::Place;

/// How many parcels there are, and which one is refused; 0 refuses the bill.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Order {
    parcels: u32,
    refused: Option<u32>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Parcel {
    number: u32,
    is_refused: bool,
}

#[saga_step(compensate = unpack)]
async fn pack(tx: &mut PgConnection, parcel: Parcel) -> Result<u32, StepError> {
    // A key of its own for each item: the second insert of one would fail.
    sqlx::query("INSERT INTO parcels (number) VALUES ($1)").bind(i64::from(parcel.number)).execute(tx).await?;
    if parcel.is_refused { Err(StepError::reject("too heavy")) } else { Ok(parcel.number * 10) }
}

#[saga_compensation]
async fn unpack(tx: &mut PgConnection, parcel: Parcel, packed: u32) -> Result<(), StepError> {
    assert_eq!(packed, parcel.number * 10);
    let delete = sqlx::query("DELETE FROM parcels WHERE number = $1").bind(i64::from(parcel.number));
    assert_eq!(delete.execute(tx).await?.rows_affected(), 1);
    Ok(())
}

#[saga_step(compensate = unlabel)]
async fn label(ctx: &StepContext, _parcel: Parcel) -> Result<String, StepError> {
    Ok(ctx.key().to_string())
}

#[saga_compensation]
async fn unlabel(_ctx: &StepContext, parcel: Parcel, label: String) -> Result<(), StepError> {
    assert!(label.ends_with(&format!(":label#{}", parcel.number)), "{label}");
    Ok(())
}

#[saga_step]
async fn bill(
    tx: &mut PgConnection,
    order: Order,
    Output(packed): Output<Each<pack>>,
    Output(labels): Output<Each<label>>,
) -> Result<(), StepError> {
    assert_eq!(packed, (1..=order.parcels).map(|number| number * 10).collect::<Vec<_>>());
    assert_eq!(labels.len(), packed.len());
    sqlx::query("INSERT INTO bills (parcels) VALUES ($1)").bind(i64::from(order.parcels)).execute(tx).await?;
    if order.refused == Some(0) { Err(StepError::reject("no credit")) } else { Ok(()) }
}

fn parcels(order: &Order) -> Vec<Parcel> {
    (1..=order.parcels).map(|number| Parcel { number, is_refused: order.refused == Some(number) }).collect()
}

async fn run(parcels_of: u32, refused: Option<u32>) -> (Outcome, i64, usize) {
    let place = Place::new().await;
    let create = "CREATE TABLE parcels (number bigint PRIMARY KEY); CREATE TABLE bills (parcels bigint)";
    place.connection().await.execute(sqlx::raw_sql(create)).await.unwrap();
    let store = place.open().await;
    let saga: Saga<PostgresStore, Order> = Saga::named("ship")
        .input()
        .for_each_with::<label>(4, parcels)
        .for_each_with::<pack>(8, parcels)
        .step::<bill>()
        .build()
        .unwrap();
    let runtime = Runtime::builder(store.clone()).saga(&saga).start().await.unwrap();
    let order = Order { parcels: parcels_of, refused };
    let running = runtime.start(&saga, "o-1", order).await.unwrap();
    let outcome = running.outcome().await.unwrap();
    runtime.shutdown().await;
    let key = Key::new("o-1").unwrap();
    let state = store.saga(&Tenant::default(), &key).await.unwrap().unwrap().state.len();
    let records = store.records_of(&Tenant::default(), &key).await.unwrap();
    let of_steps = store.records_of_steps(&Tenant::default(), &key).await.unwrap();
    assert!(of_steps.len() <= 5 && of_steps.iter().all(|record| records.contains(record)), "{of_steps:?}");
    let count = "SELECT count(*) FROM parcels";
    let rows: i64 = sqlx::query_scalar(count).fetch_one(&mut place.connection().await).await.unwrap();
    (outcome, rows, state)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_items_are_done_each_once() {
    for count in [0, 1, 1_000] {
        let (outcome, rows, state) = run(count, None).await;
        assert!(matches!(outcome, Outcome::Completed { .. }), "{count}: {outcome}");
        assert_eq!(rows, i64::from(count));
        assert!(state < 8_000, "the state has {state} bytes");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_took_effect_is_undone_when_an_item_fails_or_what_stands_behind() {
    for (refused, step) in [(7, "pack#7"), (0, "bill")] {
        let (outcome, rows, _) = run(60, Some(refused)).await;
        let Outcome::Compensated { failed_step, .. } = outcome else { panic!("{outcome}") };
        assert_eq!((failed_step.as_str(), rows), (step, 0));
    }
}
