//! A store that fails: nothing is lost, nothing is done twice, and a runtime on it can still be ended.

use std::time::Duration;

use saga_core::engine::BuildError;
use saga_core::memory::MemoryStore;
use saga_core::store::{RetryClass, StoreErrorKind};
use saga_core::{Outcome, Runtime, StartError};
use saga_tests::{Act, Faults, Fixture, Mail, Order, When, eventually, within};

use crate::{compensated, is_completed};

/// Starts as often as it takes: what fails may be done again.
async fn start(fixture: &Fixture<MemoryStore>, store: &MemoryStore, mail: &Mail) -> Runtime<MemoryStore> {
    eventually("a runtime", async || match fixture.builder_on(store.clone()).transport(mail.clone()).start().await {
        Ok(runtime) => Some(runtime),
        Err(BuildError::Store(error)) => {
            assert_ne!(error.class(), RetryClass::Permanent);
            None
        }
        Err(error) => panic!("{error}"),
    })
    .await
}

async fn run(fixture: &Fixture<MemoryStore>, runtime: &Runtime<MemoryStore>, key: &str) -> Outcome {
    let running = eventually("a start", async || match runtime.start(&fixture.saga, key, Order::of(1)).await {
        Ok(running) => Some(running),
        Err(StartError::Store(error)) => {
            assert!(matches!(error.kind(), StoreErrorKind::Unavailable | StoreErrorKind::UnknownCommit), "{error}");
            None
        }
        Err(error) => panic!("{error}"),
    });
    running.await.outcome().await.unwrap()
}

async fn every_call_fails_and_then_works(when: When) {
    let fixture = Fixture::<MemoryStore>::new().await;
    let (handle, faults) = Faults::on(&fixture.store);
    let mail = Mail::new();
    faults.each_fails(3, when);
    let runtime = start(&fixture, &handle, &mail).await;
    assert!(is_completed(&run(&fixture, &runtime, "good").await));
    // Everything that only happens in trouble has its faults as well.
    faults.each_fails(3, when);
    fixture.world.plan("bad:book", [Act::Fail]);
    fixture.world.plan("bad:charge", [Act::LoseAnswer]);
    fixture.world.plan("bad:ship", [Act::NotSent, Act::Reject]);
    assert_eq!(compensated(&run(&fixture, &runtime, "bad").await), ("ship", "declined"));

    let operations = faults.struck();
    for operation in ["start", "transact", "record", "reserve_ids", "claim"] {
        assert!(operations.contains(operation), "{operation} was never asked for: {operations:?}");
    }
    for (step, count) in [("good:book", 1), ("good:finish", 1), ("bad:book", 1), ("bad:book:undo", 1)] {
        assert_eq!(fixture.store.read(|table| table.counter(step)), count, "{step}");
    }
    assert_eq!(fixture.store.read(|table| table.counter("booked")), 1);
    assert_eq!((fixture.world.standing("good:charge"), fixture.world.standing("bad:charge")), (1, 0));
    eventually("all messages", async || {
        let (good, bad) = (mail.first_accepted("good"), mail.first_accepted("bad"));
        (good.len() == 2 && bad.len() == 2).then_some(())
    })
    .await;
    runtime.shutdown().await;
    assert!(fixture.runtime().await.admin().query().orphaned(1).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn every_call_fails_three_times_and_then_works() {
    within(every_call_fails_and_then_works(When::Before)).await;
}

#[tokio::test(start_paused = true)]
async fn every_commit_is_unknown_three_times_and_then_known() {
    within(every_call_fails_and_then_works(When::Behind)).await;
}

#[tokio::test(start_paused = true)]
async fn a_runtime_on_a_store_that_fails_for_ever_can_be_ended() {
    let fixture = Fixture::<MemoryStore>::new().await;
    let (handle, faults) = Faults::on(&fixture.store);
    let runtime = fixture.builder_on(handle).start().await.unwrap();
    fixture.world.plan("call:charge", [Act::Gate("the store fails")]);
    let call = runtime.start(&fixture.saga, "call", Order::of(1)).await.unwrap();
    eventually("the call", async || (fixture.world.calls_of("call:charge") == 1).then_some(())).await;

    faults.each_fails(u32::MAX, When::Before);
    fixture.world.open("the store fails");
    let error = runtime.start(&fixture.saga, "late", Order::of(1)).await.unwrap_err();
    assert!(matches!(&error, StartError::Store(error) if error.class() == RetryClass::Transient), "{error}");
    assert!(runtime.status("call").await.is_err());
    let limit = Duration::from_secs(11);
    tokio::time::timeout(limit, runtime.shutdown()).await.expect("it ends within its drain limit");
    assert!(call.outcome().await.is_err(), "who waits is told that the runtime ended");

    let runtime = fixture.runtime().await;
    let call = runtime.attach("call").await.unwrap();
    assert!(is_completed(&call.outcome().await.unwrap()), "nothing is lost");
    assert_eq!(fixture.world.standing("call:charge"), 1);
    assert!(is_completed(&fixture.run(&runtime, "late").await));
}
