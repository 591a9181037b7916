//! Many starts in one call: one commit, one answer each, and the guarantees of a single start.

use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::store::SagaFilter;
use saga_core::{Outcome, Runtime, Saga, Settings, StartError, StepError, saga_step};

#[saga_step]
async fn count(tx: &mut MemoryConn, pieces: u32) -> Result<u32, StepError> {
    tx.add("pieces", pieces.into())?;
    Ok(pieces)
}

#[saga_step]
async fn starts_inside(
    _tx: &mut MemoryConn,
    _pieces: u32,
    saga_core::State(runtime): saga_core::State<Inside>,
) -> Result<bool, StepError> {
    let runtime = runtime.0.lock().unwrap().clone().unwrap();
    let answers = runtime.start_many(&counting(), [("inside-1", 1)]).await;
    match answers[..] {
        [Err(StartError::InsideStep)] => Ok(true),
        _ => Err(StepError::reject("a saga was started inside a step")),
    }
}

#[derive(Clone, Default)]
struct Inside(std::sync::Arc<std::sync::Mutex<Option<Runtime<MemoryStore>>>>);

fn counting() -> Saga<MemoryStore, u32> {
    Saga::named("counting").input::<u32>().step::<count>().build().unwrap()
}

async fn runtime(store: &MemoryStore, settings: impl FnOnce(&mut Settings)) -> Runtime<MemoryStore> {
    let inside = Saga::named("inside").input::<u32>().step::<starts_inside>().build().unwrap();
    let state = Inside::default();
    let builder = Runtime::builder(store.clone()).saga(&counting()).saga(&inside).state(state.clone());
    let runtime = builder.settings(settings).start().await.unwrap();
    *state.0.lock().unwrap() = Some(runtime.clone());
    runtime
}

async fn all_of(store: &MemoryStore) -> usize {
    use saga_core::store::Sagas as _;
    store.list(&SagaFilter { limit: 10_000, ..SagaFilter::default() }).await.unwrap().len()
}

/// G6: each has the answer that it would have alone, and one that is refused does not hinder the others.
#[tokio::test]
async fn g6_each_of_many_has_the_answer_of_a_single_start() {
    let store = MemoryStore::new();
    let runtime = runtime(&store, |settings| settings.payload_bytes_max = 4).await;
    runtime.start(&counting(), "known", 3).await.unwrap();
    runtime.start(&counting(), "other", 3).await.unwrap();
    let asked =
        [("new", 1), ("known", 3), ("other", 4), ("", 5), ("long", 123_456), ("twice", 6), ("twice", 6), ("twice", 7)];
    let answers = runtime.start_many(&counting(), asked).await;
    assert_eq!(answers.len(), 8);
    let known = |index: usize| answers[index].as_ref().map(saga_core::SagaHandle::already_started).ok();
    assert_eq!((known(0), known(1), known(5), known(6)), (Some(false), Some(true), Some(false), Some(true)));
    assert!(matches!(&answers[2], Err(StartError::PayloadMismatch { key, .. }) if key == "other"));
    assert!(matches!(&answers[3], Err(StartError::Key(_))));
    assert!(matches!(&answers[4], Err(StartError::TooLarge { bytes: 6, max: 4 })));
    assert!(matches!(&answers[7], Err(StartError::PayloadMismatch { key, .. }) if key == "twice"));
    assert_eq!(answers[0].as_ref().unwrap().key().as_str(), "new");
    assert_eq!(answers[5].as_ref().unwrap().id(), answers[6].as_ref().unwrap().id());
    for answer in answers.iter().flatten() {
        assert!(matches!(answer.outcome().await.unwrap(), Outcome::Completed { .. }));
    }
    assert_eq!(store.read(|table| table.counter("pieces")), 3 + 3 + 1 + 6);
    assert_eq!(all_of(&store).await, 4);
    let again = runtime.start_many(&counting(), [("new", 1), ("known", 3)]).await;
    assert!(again.iter().all(|answer| answer.as_ref().is_ok_and(saga_core::SagaHandle::already_started)));
    assert!(runtime.start_many(&counting(), Vec::<(&str, u32)>::new()).await.is_empty());
    assert!(runtime.start_many(&counting(), [("", 1)]).await[0].is_err(), "all of them are refused");
    runtime.shutdown().await;
}

/// More than this process has places for are started all the same: the rest waits in the store.
#[tokio::test]
async fn more_than_there_is_room_for_are_started_and_end() {
    let store = MemoryStore::new();
    let runtime = runtime(&store, |settings| settings.sagas_in_memory_max = 16).await;
    let answers = runtime.start_many(&counting(), (0..2_500).map(|id| (format!("saga-{id}"), 1))).await;
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(all_of(&store).await, 2_500);
    for answer in answers.iter().flatten() {
        assert!(matches!(answer.outcome().await.unwrap(), Outcome::Completed { .. }));
    }
    assert_eq!(store.read(|table| table.counter("pieces")), 2_500);
    let started = runtime.statistics().started;
    assert_eq!(started, 2_500);
    runtime.shutdown().await;
}

/// G10: a call that was dropped has started all of a commit or none, and can be repeated.
#[tokio::test]
async fn g10_a_dropped_call_is_repeated() {
    let store = MemoryStore::new();
    let runtime = runtime(&store, |_| {}).await;
    let asked = || (0..50).map(|id| (format!("saga-{id}"), 2));
    {
        let saga = counting();
        let mut call = std::pin::pin!(runtime.start_many(&saga, asked()));
        // It is polled once, and dropped.
        let polled = std::future::poll_fn(|cx| std::task::Poll::Ready(call.as_mut().poll(cx).is_ready())).await;
        assert!(!polled, "one commit takes longer than one poll");
    }
    let answers = runtime.start_many(&counting(), asked()).await;
    assert!(answers.iter().all(Result::is_ok));
    for answer in answers.iter().flatten() {
        answer.outcome().await.unwrap();
    }
    assert_eq!(store.read(|table| table.counter("pieces")), 100);
    runtime.shutdown().await;
}

#[tokio::test]
async fn nothing_is_started_inside_a_step_nor_behind_a_shutdown() {
    let store = MemoryStore::new();
    let runtime = runtime(&store, |_| {}).await;
    let inside = Saga::named("inside").input::<u32>().step::<starts_inside>().build().unwrap();
    let running = runtime.start(&inside, "outer", 1).await.unwrap();
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    runtime.shutdown().await;
    let answers = runtime.start_many(&counting(), [("late-1", 1), ("late-2", 1)]).await;
    assert!(answers.iter().all(|answer| matches!(answer, Err(StartError::ShuttingDown))));
    assert_eq!(all_of(&store).await, 1);
}
