//! Versions beside each other, and those that changed or that nobody knows.

use std::sync::atomic::Ordering;

use saga_core::StepPhase;
use saga_core::engine::{BuildError, RuntimeError};
use saga_core::memory::MemoryStore;
use saga_core::saga::Branch;
use saga_core::store::SagaFilter;
use saga_core::{Outcome, Runtime, Saga};

use crate::versions::shop::{
    Buy, Shop, charge, confirm, left_behind, phases, start, status, take_stock, v1, v2, v3, weigh,
};

async fn refusal(store: &MemoryStore, saga: &Buy) -> Option<String> {
    match Runtime::builder(store.clone()).state(Shop::new()).saga(saga).start().await {
        Ok(runtime) => {
            runtime.shutdown().await;
            None
        }
        Err(BuildError::Invalid(problems)) => Some(problems.join("; ")),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn versions_run_side_by_side_and_each_saga_stays_on_its_own() {
    let (store, shop) = (MemoryStore::new(), Shop::new());
    shop.is_open.store(true, Ordering::SeqCst);
    let (first, third) = (v1(), v3());
    let runtime = start(&store, &shop, &[&first, &third]).await;
    let (one, other) = (runtime.start(&first, "k-1", 7).await.unwrap(), runtime.start(&third, "k-3", 7).await.unwrap());
    assert!(matches!(one.outcome().await.unwrap(), Outcome::Completed { .. }));
    assert!(matches!(other.outcome().await.unwrap(), Outcome::Completed { .. }));
    let (one, other) = (status(&runtime, "k-1").await, status(&runtime, "k-3").await);
    assert_eq!((one.summary.version, one.steps.len()), (1, 3));
    assert_eq!((other.summary.version, other.steps.len()), (3, 4));
    // The same key is the same saga, on the version that it was started with (G6).
    let again = runtime.start(&third, "k-1", 7).await.unwrap();
    assert!(again.already_started());
    assert_eq!(status(&runtime, "k-1").await.summary.version, 1);
    runtime.shutdown().await;
}

#[tokio::test]
async fn a_definition_that_changed_under_its_version_is_refused_and_says_what_changed() {
    let store = left_behind(&Shop::new()).await;
    assert_eq!(refusal(&store, &v1()).await, None, "it did not change");
    let cases: [(Buy, &[&str]); 4] = [
        (
            Saga::named("buy")
                .input()
                .step::<take_stock>()
                .step::<weigh>()
                .step::<charge>()
                .step::<confirm>()
                .build()
                .unwrap(),
            &["`weigh` was added behind `take-stock`"],
        ),
        (
            Saga::named("buy").input().step::<charge>().step::<take_stock>().step::<confirm>().build().unwrap(),
            &["`take-stock` was moved: it came first, and comes behind `charge`"],
        ),
        (
            Saga::named("buy").input().step::<take_stock>().pivot().step::<charge>().build().unwrap(),
            &["`confirm` was removed", "the pivot was `confirm`, and is `take-stock`"],
        ),
        (
            Saga::named("buy")
                .input()
                .parallel(|group| group.branch(Branch::step::<take_stock>).branch(Branch::step::<charge>))
                .step::<confirm>()
                .build()
                .unwrap(),
            &["`charge` was moved: it came behind `take-stock`, and comes first"],
        ),
    ];
    for (changed, expected) in cases {
        let refusal = refusal(&store, &changed).await.expect("it changed");
        assert!(refusal.starts_with("buy version 1 has changed: since sagas of it were started, "), "{refusal}");
        assert!(refusal.contains("give the changed steps `.version(2)`"), "{refusal}");
        for expected in expected {
            assert!(refusal.contains(expected), "{expected}: {refusal}");
        }
    }
    assert_eq!(refusal(&store, &v1()).await, None, "who was refused left nothing behind");
}

#[tokio::test]
async fn a_definition_without_sagas_may_change() {
    let store = MemoryStore::new();
    assert_eq!(refusal(&store, &v1()).await, None);
    let changed = Saga::named("buy").input().step::<charge>().step::<confirm>().build().unwrap();
    assert_eq!(refusal(&store, &changed).await, None, "no saga was started with it");
    assert_eq!(refusal(&store, &v1()).await, None);
}

#[tokio::test]
async fn many_processes_register_at_once() {
    let store = MemoryStore::new();
    let starts: Vec<_> = (0..8)
        .map(|_| {
            tokio::spawn({
                let store = store.clone();
                async move { refusal(&store, &v1()).await }
            })
        })
        .collect();
    for start in starts {
        assert_eq!(start.await.unwrap(), None);
    }
}

#[tokio::test]
async fn sagas_of_a_version_that_nobody_knows_wait_and_are_listed() {
    let shop = Shop::new();
    let store = left_behind(&shop).await;
    shop.is_open.store(true, Ordering::SeqCst);
    let runtime = start(&store, &shop, &[&v2()]).await;

    let waiting = runtime.admin().query().list(SagaFilter::default()).await.unwrap().remove(0);
    let reason = waiting.waits_for.expect("nobody knows its version");
    assert!(reason.contains("buy version 1 is not registered here"), "{reason}");
    let unregistered = runtime.admin().query().unregistered().await.unwrap();
    assert_eq!(unregistered[0].to_string(), "1 command of buy version 1 waits, which is not registered here");
    // What the store keeps of the definition is enough to show it.
    let shown = status(&runtime, "k-1").await;
    let expected = [("take-stock", StepPhase::Done), ("charge", StepPhase::Started), ("confirm", StepPhase::Ready)];
    assert_eq!(phases(&shown), expected);
    assert_eq!(shown.steps[1].after, ["take-stock"]);
    assert!(matches!(
        runtime.admin().control("k-1").at_revision(shown.revision).retry("why not").await,
        Err(RuntimeError::UnknownDefinition { .. })
    ));
    runtime.shutdown().await;

    let runtime = start(&store, &shop, &[&v1(), &v2()]).await;
    let outcome = runtime.attach("k-1").await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    assert!(runtime.admin().query().unregistered().await.unwrap().is_empty());
    assert_eq!(runtime.admin().query().list(SagaFilter::default()).await.unwrap()[0].waits_for, None);
    runtime.shutdown().await;
}
