//! What a definition with locks of steps may say, and where they work: in lists, batches and other services.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::{
    Batch, BatchResults, Entity, Locked, Outcome, Runtime, Saga, State, StepError, saga_compensation, saga_step,
};

#[saga_step(compensate = put_back)]
async fn take(_shelf: u32) -> Result<(), StepError> {
    Ok(())
}

#[saga_compensation]
async fn put_back(_shelf: u32, _taken: Option<()>, _locked: Locked) -> Result<(), StepError> {
    Ok(())
}

#[test]
fn a_compensation_cannot_take_a_lock_that_its_step_has_not() {
    let saga: Result<Saga<MemoryStore, u32>, _> = Saga::named("shelves").input::<u32>().step::<take>().build();
    let error = saga.unwrap_err().to_string();
    assert!(error.contains("`take` or its compensation takes `Locked`, and the step has no lock"), "{error}");
}

#[saga_step(no_compensation, lock = |shelf: &u32| vec![Entity::new("shelf", shelf); usize::from(*shelf > 0)])]
async fn count(_shelf: u32) -> Result<(), StepError> {
    Ok(())
}

/// The closure of the application is wrong, so an operator decides.
#[tokio::test(start_paused = true)]
async fn a_step_that_names_no_entity_is_stuck() {
    let saga = Saga::named("shelves").input::<u32>().step::<count>().build().unwrap();
    let runtime = Runtime::builder(MemoryStore::new()).saga(&saga).start().await.unwrap();
    let outcome = runtime.start(&saga, "s-0", 0).await.unwrap().outcome().await.unwrap();
    let expected = "what it locks cannot be said: it names no entity to lock";
    assert!(matches!(outcome, Outcome::Stuck { .. }) && outcome.to_string().contains(expected), "{outcome}");
    let outcome = runtime.start(&saga, "s-1", 1).await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    runtime.shutdown().await;
}

/// The inputs of each call.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<Vec<Vec<u32>>>>);

#[saga_step(no_compensation, lock = |shelf| Entity::new("shelf", shelf))]
async fn fill(
    tx: &mut MemoryConn,
    shelves: Batch<u32>,
    State(calls): State<Calls>,
) -> Result<BatchResults<u64>, StepError> {
    calls.0.lock().unwrap().push(shelves.to_vec());
    Ok(shelves.map_each_with(|ctx, shelf| {
        let token = ctx.locked()[0].token;
        tx.put(&format!("shelf-{shelf}"), token.to_be_bytes())?;
        Ok::<u64, StepError>(token)
    }))
}

/// G5: each item of a list has a lock of its own, and so has each input of a batch. Those that share a transaction and a shelf come in
/// one call after the other.
#[tokio::test(start_paused = true)]
async fn g5_items_and_inputs_of_batches_have_their_own_locks() {
    let saga = Saga::named("shelves")
        .input::<Vec<u32>>()
        .for_each::<fill, _>(6, |shelves: &Vec<u32>| shelves.clone())
        .build()
        .unwrap();
    let calls = Calls::default();
    let store = MemoryStore::new();
    let runtime = Runtime::builder(store.clone()).saga(&saga).state(calls.clone()).start().await.unwrap();
    let mut running = tokio::task::JoinSet::new();
    for number in 0..8_u32 {
        let shelves = (0..6).map(|item| (number + item) % 5).collect();
        let (runtime, saga) = (runtime.clone(), saga.clone());
        running.spawn(async move {
            let saga = runtime.start(&saga, format!("s-{number}"), shelves).await.unwrap();
            saga.outcome().await.unwrap()
        });
    }
    for outcome in running.join_all().await {
        assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    }
    let calls = std::mem::take(&mut *calls.0.lock().unwrap());
    assert!(calls.iter().any(|shelves| shelves.len() > 1), "several come in one call: {calls:?}");
    let is_apart = |shelves: &Vec<u32>| shelves.iter().collect::<BTreeSet<_>>().len() == shelves.len();
    assert!(calls.iter().all(is_apart), "one call has a shelf once: {calls:?}");
    let left = runtime.admin().query().semantic_locks(saga_core::engine::SemanticLocksFilter::default()).await.unwrap();
    assert_eq!(left, []);
    runtime.shutdown().await;
}
