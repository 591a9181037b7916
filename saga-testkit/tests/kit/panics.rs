//! Panics in code that is not the engine's: each concerns its own saga, and no task of the runtime ends with it.

mod bombs;
mod brittle;
mod scenario;

use std::time::Duration;

use bombs::{Trick, sagas};
use saga_core::engine::RuntimeBuilder;
use saga_core::env::TokioEnvironment;
use saga_core::memory::MemoryStore;
use saga_core::{Outcome, Runtime, Saga, StepContext, StepError, saga_step};
use tokio::time::timeout;

/// Longer than a lease, and shorter than what nobody goes on with.
const SOON: Duration = Duration::from_mins(5);

const LEASE: Duration = Duration::from_mins(1);

/// An ordinary call.
#[saga_step(no_compensation, timeout = "30s")]
async fn wait(_ctx: &StepContext, seconds: u32) -> Result<u32, StepError> {
    tokio::time::sleep(Duration::from_secs(seconds.into())).await;
    Ok(seconds)
}

fn waiting() -> Saga<MemoryStore, u32> {
    Saga::named("wait").input::<u32>().step::<wait>().build().unwrap()
}

async fn replica(store: &MemoryStore) -> Runtime<MemoryStore> {
    let builder = sagas().iter().fold(Runtime::builder(store.clone()), RuntimeBuilder::saga);
    builder.saga(&waiting()).start().await.unwrap()
}

fn is_completed(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Completed { .. })
}

async fn ends_soon(runtime: &Runtime<MemoryStore>, key: &str) -> Outcome {
    let running = runtime.attach(key).await.unwrap();
    let Ok(outcome) = timeout(SOON, running.outcome()).await else {
        panic!("{key} has not ended: {:?}", runtime.status(key).await);
    };
    outcome.unwrap()
}

/// Whatever panics, in whichever function of a step and at whichever moment, its own saga ends and so do the others.
#[tokio::test(start_paused = true)]
async fn g10_a_panic_of_a_step_concerns_its_own_saga_whenever_it_comes() {
    let store = MemoryStore::new();
    let runtime = replica(&store).await;
    for saga in &sagas() {
        for trick in Trick::ALL {
            // More of them than there are workers.
            for number in 0..10 {
                let key = format!("{}-{trick:?}-{number}", saga.name());
                runtime.start(saga, &key, trick).await.unwrap();
            }
        }
        let key = format!("{}-well", saga.name());
        runtime.start(saga, &key, Trick::Never).await.unwrap();
        let outcome = ends_soon(&runtime, &key).await;
        assert!(is_completed(&outcome), "{key}: {outcome}");
    }
    for saga in &sagas() {
        for trick in Trick::ALL {
            for number in 0..10 {
                let outcome = ends_soon(&runtime, &format!("{}-{trick:?}-{number}", saga.name())).await;
                assert!(!is_completed(&outcome), "{} {trick:?}: {outcome}", saga.name());
            }
        }
    }
    assert_eq!(runtime.health().panicked, []);
    runtime.shutdown().await;
}

/// What a dead process held is recovered, also where a call of it panics when it is dropped at its time limit.
#[tokio::test(start_paused = true)]
async fn g11_a_recovered_call_that_panics_when_it_is_dropped_holds_up_no_other() {
    let (store, waiting) = (MemoryStore::new(), waiting());
    let dead = replica(&store).await;
    dead.start(&sagas()[0], "bomb", Trick::PanicsWhenDropped).await.unwrap();
    for number in 0..10 {
        dead.start(&waiting, format!("o-{number}"), 3).await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    drop(dead);
    let runtime = replica(&store).await;
    for number in 0..10 {
        assert!(is_completed(&ends_soon(&runtime, &format!("o-{number}")).await));
    }
    assert!(!is_completed(&ends_soon(&runtime, "bomb").await));
    assert_eq!(runtime.health().panicked, []);
    runtime.shutdown().await;
}

/// Wherever the engine panics, be it once, it goes on, and what was under way is taken up again.
#[tokio::test(start_paused = true)]
async fn g10_a_panic_of_the_engine_at_any_moment_ends_no_lane() {
    let (mut panics_in, mut shown, mut late) = (0, 0, Vec::new());
    loop {
        let (store, env) = (MemoryStore::new(), scenario::Brittle::new(panics_in));
        let ran = scenario::run(&store, &store, env.clone()).await;
        if env.calls() <= panics_in {
            break;
        }
        shown += ran.health.panicked.len();
        // Nothing has to wait for the end of its lease.
        if ran.took >= LEASE {
            late.push((panics_in, ran));
        }
        panics_in += 1;
    }
    assert!(late.is_empty(), "{late:#?}");
    assert!(panics_in > 100 && shown > 50, "{panics_in} calls, {shown} shown");
}

/// A store that panics in a call, before it is carried out or behind, is one that failed.
#[tokio::test(start_paused = true)]
async fn g10_a_store_that_panics_once_in_any_call_ends_no_lane() {
    let mut met = Vec::new();
    for operation in brittle::operations() {
        for is_late in [false, true] {
            let inner = MemoryStore::new();
            let store = brittle::brittle(&inner, operation, is_late);
            let env = std::sync::Arc::new(TokioEnvironment::current().unwrap());
            let ran = scenario::run(&store, &inner, env).await;
            // What was leased by a call whose answer was lost waits for the end of its lease.
            assert!(ran.took <= LEASE + Duration::from_secs(10), "{operation}: {ran:?}");
            met.extend(store.0.has_panicked().then_some((operation, is_late)));
        }
    }
    assert!(met.len() > 30, "{met:?}");
}

/// A subscriber that cannot write, since nobody reads any more, panics in each event that somebody logs.
#[tokio::test(start_paused = true)]
async fn g10_a_log_that_panics_changes_nothing() {
    let _until_the_end = tracing::subscriber::set_default(Unwritable);
    let store = MemoryStore::new();
    let brittle = brittle::brittle(&store, "claim", false);
    let env = scenario::Brittle::new(u64::MAX);
    let ran = scenario::run(&brittle, &store, env).await;
    assert!(ran.health.panicked.is_empty(), "{ran:?}");
}

pub(crate) struct Unwritable;

impl tracing::Subscriber for Unwritable {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        panic!("failed printing to stderr: {:?}", event.metadata().name());
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}
