//! Holding sagas up on every store: by a process that works on them, and by one that does not.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says what it expects by failing")]

use saga_core::Outcome;
use saga_core::engine::{Pausing, Resumption, SagaDesk};
use saga_core::machine::StepPhase;
use saga_core::store::Status;
use saga_tests::{Act, Fixture, Order, Shop, eventually, on_both_stores};

async fn nothing_begins_before_it_is_resumed<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let runtime = fixture.runtime().await;
    // The first attempts have no answer, so that there is a next one to wait for.
    fixture.world.always("k:ship", Act::LoseAnswer);
    let running = runtime.start(&fixture.saga, "k", Order::of(1)).await.unwrap();
    eventually("it was tried", async || (fixture.world.calls_of("k:ship") > 0).then_some(())).await;
    let desk = SagaDesk::new(fixture.store.clone()).saga(&fixture.saga).by("ann");
    assert_eq!(desk.pause("k", "the carrier called").await.unwrap(), Pausing::Paused);
    assert_eq!(runtime.pause("k", "so they say").await.unwrap(), Pausing::Already);
    let paused = fixture.status(&runtime, "k").await;
    assert_eq!(paused.summary.status, Status::Paused);
    assert_eq!(paused.summary.paused.unwrap().by.as_deref(), Some("ann"));

    // Others go on beside it.
    fixture.world.repair("k:ship");
    for number in 0..20 {
        let outcome = fixture.run(&runtime, &format!("other-{number}")).await;
        assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    }
    let status = fixture.status(&runtime, "k").await;
    assert_eq!((status.summary.status, status.summary.outcome), (Status::Paused, None));
    assert!(runtime.inspector().forgotten(9).await.unwrap().is_empty());

    runtime.shutdown().await;
    drop((runtime, running, desk));
    let fixture = fixture.reopened().await;
    let runtime = fixture.runtime().await;
    assert_eq!(fixture.status(&runtime, "k").await.summary.status, Status::Paused, "it outlives the process");
    let desk = SagaDesk::new(fixture.store.clone()).saga(&fixture.saga);
    assert_eq!(desk.resume("k", "it was corrected").await.unwrap(), Resumption::Resumed);
    let outcome = runtime.attach("k").await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    let ended = fixture.status(&runtime, "k").await;
    assert!(ended.steps.iter().all(|step| step.phase == StepPhase::Done));
    assert_eq!((ended.summary.paused, fixture.store.total("k:book").await), (None, 1));
    let acts: Vec<String> = ended.history.iter().filter_map(|entry| Some(entry.act.as_ref()?.to_string())).collect();
    assert_eq!(acts, ["pause by ann: the carrier called", "resume: it was corrected"]);
    runtime.shutdown().await;
}

on_both_stores!(nothing_begins_before_it_is_resumed);
