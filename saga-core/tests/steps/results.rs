//! What a definition may return, and what a sub-saga returned that has no result.

use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::saga::{Branch, SagaBuilder};
use saga_core::store::Status;
use saga_core::{Outcome, Output, Outputs, Runtime, Saga, SagaFailure, StepError, SubSaga, saga_step};

#[saga_step(no_compensation)]
async fn pack(_tx: &mut MemoryConn, pieces: u32) -> Result<u32, StepError> {
    Ok(pieces * 10)
}

#[saga_step(no_compensation)]
async fn ship(_tx: &mut MemoryConn, pieces: u32) -> Result<String, StepError> {
    Ok(format!("truck for {pieces}"))
}

/// Never ends by itself.
#[saga_step(no_compensation)]
async fn hold(_tx: &mut MemoryConn, _pieces: u32) -> Result<(), StepError> {
    Err(StepError::stuck("the gate is shut"))
}

#[saga_step]
async fn note(tx: &mut MemoryConn, _pieces: u32, Output(truck): Output<Shipping>) -> Result<(), StepError> {
    tx.log(truck);
    Ok(())
}

struct Shipping;

impl SubSaga for Shipping {
    const NAME: &'static str = "shipping";
    type Input = u32;
    type Output = String;
}

fn new() -> SagaBuilder<MemoryStore, u32> {
    Saga::named("order").input::<u32>()
}

#[test]
fn what_cannot_be_returned_is_refused() {
    let check = |built: Result<Saga<MemoryStore, u32, u32>, saga_core::SagaError>, expected: &str| {
        let said = built.unwrap_err().to_string();
        assert!(said.contains(expected), "{said}");
    };
    let in_arm = || new().when("is-large", |pieces: &u32| *pieces > 9, Branch::step::<pack>).step::<ship>();
    let each = || new().for_each::<pack, _>(2, |pieces: &u32| vec![*pieces]);
    check(new().step::<ship>().returns::<pack>().build(), "`.returns` needs the output of `pack`, which does not run");
    check(
        in_arm().returns::<pack>().build(),
        "`.returns` takes the output of `pack`, which stands in an arm of a choice",
    );
    check(each().returns::<pack>().build(), "`.returns` takes the output of `pack`, which runs once for each item");
    let sum = |_: &u32, Outputs(packed): Outputs<pack>| packed.iter().sum::<u32>();
    check(
        new().step::<pack>().returns_from(sum).build(),
        "`.returns_from` takes the outputs of `pack` as a list, but it runs once",
    );
    let sure = |_: &u32, packed: Option<Output<pack>>| packed.map_or(0, |Output(packed)| packed);
    check(
        new().step::<pack>().returns_from(sure).build(),
        "`.returns_from` takes the output of `pack` as an `Option`, but that step always runs",
    );
    check(Saga::named("order").input::<u32>().returns_from(|pieces: &u32| *pieces).build(), "it has no step");
    assert!(each().returns_from(sum).build().is_ok() && in_arm().returns_from(sure).build().is_ok());
}

/// The other fields of a definition are kept, also by one that only leaves out the type.
#[tokio::test]
async fn a_saga_without_the_type_of_its_result_returns_it_all_the_same() {
    let typed = new().version(3).step::<pack>().returns::<pack>().build().unwrap();
    let saga = typed.without_result_type();
    assert_eq!((saga.name(), saga.version()), ("order", 3));
    let runtime = Runtime::builder(MemoryStore::new()).saga(&saga).start().await.unwrap();
    runtime.start(&saga, "o-1", 2).await.unwrap().result().await.unwrap();
    assert_eq!(runtime.attach_to(&typed, "o-1").await.unwrap().result().await.unwrap(), 20);
    runtime.shutdown().await;
}

/// Sagas that completed before their definition returned something have no result, and say so.
#[tokio::test]
async fn what_completed_before_has_no_result() {
    let (before, now) =
        (new().step::<pack>().build().unwrap(), new().step::<pack>().returns::<pack>().build().unwrap());
    let store = MemoryStore::new();
    let runtime = Runtime::builder(store.clone()).saga(&before).start().await.unwrap();
    runtime.start(&before, "o-1", 2).await.unwrap().outcome().await.unwrap();
    runtime.shutdown().await;
    let runtime = Runtime::builder(store).saga(&now).start().await.unwrap();
    let failure = runtime.start(&now, "o-1", 2).await.unwrap().result().await.unwrap_err();
    assert!(matches!(failure, SagaFailure::NoResult { .. }), "{failure}");
    runtime.shutdown().await;
}

/// A sub-saga that a version completed which kept no results is read like this one: the result is made of its records.
#[tokio::test]
async fn a_sub_saga_without_a_kept_result_returns_what_is_recorded() {
    let child = Saga::named("ship").input::<u32>().step::<ship>().step::<hold>().returns::<ship>().build().unwrap();
    let order = new().sub_saga::<Shipping>(&child).step::<note>().build().unwrap();
    let store = MemoryStore::new();
    let runtime = Runtime::builder(store.clone()).saga(&order).start().await.unwrap();
    let running = runtime.start(&order, "o-1", 2).await.unwrap();
    while runtime.status("o-1>shipping").await.unwrap().is_none_or(|is| is.summary.status != Status::Stuck) {
        tokio::task::yield_now().await;
    }
    runtime.admin().control("o-1>shipping").force_completed("it is on its way").await.unwrap();
    let failure = runtime.attach_to(&child, "o-1>shipping").await.unwrap().result().await.unwrap_err();
    assert!(matches!(failure, SagaFailure::Forced { .. }), "{failure}");
    let outcome = running.outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    assert_eq!(store.read(|table| table.log().to_vec()), [b"truck for 2".to_vec()]);
    runtime.shutdown().await;
}
