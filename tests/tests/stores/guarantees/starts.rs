//! G6: starting sagas.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use saga_core::memory::MemoryStore;
use saga_core::store::{RetryClass, SagaFilter};
use saga_core::{Saga, StartError};
use saga_tests::{Act, Faults, Fixture, Order, Shop, When, charge, on_both_stores, within};

use crate::guarantees::is_completed;

/// G6: When `start` returned, the saga is durable; when it failed, the same call may be repeated. The same key with the
/// same payload gives the same saga and the same answer; with another payload or another saga it is refused, and nothing
/// changes.
async fn g6_a_saga_that_was_started_is_there_after_the_process<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let runtime = fixture.runtime().await;
    fixture.world.plan("k:charge", [Act::Hang]);
    let id = runtime.start(&fixture.saga, "k", Order::of(1)).await.unwrap().id();
    drop(runtime);
    let fixture = fixture.reopened().await;
    let runtime = fixture.runtime().await;
    let again = runtime.start(&fixture.saga, "k", Order::of(1)).await.unwrap();
    assert!(again.already_started() && again.id() == id);
    assert!(is_completed(&again.outcome().await.unwrap()));
    assert_eq!(fixture.store.total("k:book").await, 1);
}

async fn g6_many_starts_of_one_key_are_one_saga<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let replica = async || fixture.patient().start().await.unwrap();
    let replicas = [replica().await, replica().await];
    let start = |n: usize| {
        let (runtime, saga) = (replicas[n % 2].clone(), fixture.saga.clone());
        tokio::spawn(async move { runtime.start(&saga, "k", Order::of(1)).await })
    };
    let starts: Vec<_> = (0..16).map(start).collect();
    let mut new = 0;
    let mut ids = Vec::new();
    for start in starts {
        let running = start.await.unwrap().unwrap();
        new += usize::from(!running.already_started());
        ids.push(running.id());
        assert!(is_completed(&running.outcome().await.unwrap()));
    }
    ids.dedup();
    assert_eq!((new, ids.len()), (1, 1));
    assert_eq!(fixture.world.calls(), ["k:book", "k:charge", "k:ship", "k:finish"]);
    assert_eq!(replicas[0].admin().query().list(SagaFilter::default()).await.unwrap().len(), 1);
}

async fn g6_another_payload_or_another_saga_is_refused<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let other = Saga::<S, ()>::named("other").input::<Order>().step::<charge>().build().unwrap();
    let runtime = fixture.builder().saga(&other).start().await.unwrap();
    fixture.run(&runtime, "k").await;
    let before = fixture.status(&runtime, "k").await;
    let payload = runtime.start(&fixture.saga, "k", Order::of(2)).await.unwrap_err();
    assert!(matches!(payload, StartError::PayloadMismatch { .. }), "{payload}");
    let saga = runtime.start(&other, "k", Order::of(1)).await.unwrap_err();
    assert!(matches!(saga, StartError::OtherSaga { .. }), "{saga}");
    assert_eq!(fixture.status(&runtime, "k").await, before);
}

/// G6, G10: a `start` that is dropped at any of its awaits started the saga or did not; the same call finds out.
async fn g6_a_dropped_start_is_repeated<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let runtime = fixture.runtime().await;
    for polls in 0..6 {
        let key = format!("k{polls}");
        {
            let mut start = pin!(runtime.start(&fixture.saga, &key, Order::of(1)).into_future());
            for _ in 0..polls {
                let is_ready = poll_fn(|cx| Poll::Ready(start.as_mut().poll(cx).is_ready())).await;
                if is_ready {
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
        assert!(is_completed(&fixture.run(&runtime, &key).await), "{key}");
        assert_eq!(fixture.store.total(&format!("{key}:book")).await, 1);
    }
}

/// G6: a start whose commit is in doubt, or that failed, may be repeated.
#[tokio::test(start_paused = true)]
async fn g6_a_start_that_failed_is_repeated() {
    within(async {
        for (key, when, class) in
            [("not", When::Before, RetryClass::Transient), ("perhaps", When::Behind, RetryClass::Unknown)]
        {
            let fixture = Fixture::<MemoryStore>::new().await;
            let (handle, faults) = Faults::on(&fixture.store);
            let runtime = fixture.builder_on(handle).start().await.unwrap();
            faults.one_fails("start", 1, when);
            let error = runtime.start(&fixture.saga, key, Order::of(1)).await.unwrap_err();
            assert!(matches!(&error, StartError::Store(error) if error.class() == class), "{error}");
            assert!(is_completed(&fixture.run(&runtime, key).await));
            assert_eq!(fixture.store.total(&format!("{key}:book")).await, 1);
        }
    })
    .await;
}

/// Once its first step is known to be quick, a saga starts in the transaction of that step.
#[tokio::test]
async fn g6_a_start_whose_transaction_failed_happened_once_or_is_repeated() {
    within(async {
        let fixture = Fixture::<MemoryStore>::new().await;
        let (handle, faults) = Faults::on(&fixture.store);
        let runtime = fixture.builder_on(handle).start().await.unwrap();
        assert!(is_completed(&fixture.run(&runtime, "known-to-be-quick").await));

        faults.one_fails("transact", 1, When::Before);
        assert!(is_completed(&fixture.run(&runtime, "not").await), "it is started by itself");
        assert_eq!(fixture.store.total("not:book").await, 1);

        faults.one_fails("transact", 1, When::Behind);
        let error = runtime.start(&fixture.saga, "perhaps", Order::of(1)).await.unwrap_err();
        assert!(matches!(&error, StartError::Store(error) if error.class() == RetryClass::Unknown), "{error}");
        assert!(is_completed(&fixture.run(&runtime, "perhaps").await));
        assert_eq!(fixture.store.total("perhaps:book").await, 1);
    })
    .await;
}

on_both_stores!(
    g6_a_saga_that_was_started_is_there_after_the_process,
    g6_many_starts_of_one_key_are_one_saga,
    g6_another_payload_or_another_saga_is_refused,
    g6_a_dropped_start_is_repeated,
);
