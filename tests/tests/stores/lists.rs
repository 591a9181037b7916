//! A step that is done for each item of a list, on every store.

use saga_core::{Key, Outcome, Outputs, Runtime, Saga, StepContext, StepError, Tenant, saga_compensation, saga_step};
use saga_sqlite::SqliteStore;
use saga_tests::Books;
use serde::{Deserialize, Serialize};

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
async fn pack<S: Books>(tx: &mut S::Conn, parcel: Parcel) -> Result<u32, StepError> {
    let packed = S::add(tx, &format!("parcel {}", parcel.number), 1).await?;
    assert_eq!(packed, 1, "each item is done once");
    S::add(tx, "parcels", 1).await?;
    if parcel.is_refused { Err(StepError::reject("too heavy")) } else { Ok(parcel.number * 10) }
}

#[saga_compensation]
async fn unpack<S: Books>(tx: &mut S::Conn, parcel: Parcel, packed: u32) -> Result<(), StepError> {
    assert_eq!(packed, parcel.number * 10);
    assert_eq!(S::add(tx, &format!("parcel {}", parcel.number), -1).await?, 0);
    S::add(tx, "parcels", -1).await?;
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
async fn bill<S: Books>(
    tx: &mut S::Conn,
    order: Order,
    Outputs(packed): Outputs<pack>,
    Outputs(labels): Outputs<label>,
) -> Result<(), StepError> {
    assert_eq!(packed, (1..=order.parcels).map(|number| number * 10).collect::<Vec<_>>());
    assert_eq!(labels.len(), packed.len());
    S::add(tx, "bills", 1).await?;
    if order.refused == Some(0) { Err(StepError::reject("no credit")) } else { Ok(()) }
}

fn parcels(order: &Order) -> Vec<Parcel> {
    (1..=order.parcels).map(|number| Parcel { number, is_refused: order.refused == Some(number) }).collect()
}

/// How it ended, how many parcels are packed then, and how many bytes its state has.
async fn run<S: Books>(parcels_of: u32, refused: Option<u32>) -> (Outcome, i64, usize) {
    let (store, _kept) = S::fresh().await;
    let saga: Saga<S, Order> = Saga::named("ship")
        .input::<Order>()
        .for_each::<pack, _>(16, parcels)
        .for_each::<label, _>(16, parcels)
        .step::<bill>()
        .build()
        .unwrap();
    let runtime = Runtime::builder(store.clone()).saga(&saga).start().await.unwrap();
    let order = Order { parcels: parcels_of, refused };
    let outcome = runtime.start(&saga, "o-1", order).await.unwrap().outcome().await.unwrap();
    runtime.shutdown().await;
    let key = Key::new("o-1").unwrap();
    let state = store.saga(&Tenant::default(), &key).await.unwrap().unwrap().state.len();
    let records = store.records_of(&Tenant::default(), &key).await.unwrap();
    let of_steps = store.records_of_steps(&Tenant::default(), &key).await.unwrap();
    assert!(of_steps.len() <= 5 && of_steps.iter().all(|record| records.contains(record)), "{of_steps:?}");
    (outcome, store.counter("parcels").await, state)
}

async fn each_item_is_done_once<S: Books>() {
    for count in [0, 1, 100] {
        let (outcome, packed, _) = run::<S>(count, None).await;
        assert!(matches!(outcome, Outcome::Completed { .. }), "{count}: {outcome}");
        assert_eq!(packed, i64::from(count));
    }
}

async fn what_took_effect_is_undone_when_an_item_fails_or_what_stands_behind<S: Books>() {
    for (refused, step) in [(7, "pack#7"), (0, "bill")] {
        let (outcome, packed, _) = run::<S>(60, Some(refused)).await;
        let Outcome::Compensated { failed_step, .. } = outcome else { panic!("{outcome}") };
        assert_eq!((failed_step.as_str(), packed), (step, 0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_items_leave_the_state_small() {
    let (outcome, packed, state) = saga_tests::within(run::<SqliteStore>(1_000, None)).await;
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    assert_eq!(packed, 1_000);
    assert!(state < 8_000, "the state has {state} bytes");
}

saga_tests::on_every_store! {
    each_item_is_done_once,
    what_took_effect_is_undone_when_an_item_fails_or_what_stands_behind,
}
