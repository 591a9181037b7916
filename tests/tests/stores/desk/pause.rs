use saga_core::Outcome;
use saga_core::StepPhase;
use saga_core::engine::ControlOutcome;
use saga_core::store::Status;
use saga_tests::{Act, Fixture, Order, Shop, eventually, on_both_stores};

use crate::desk::{acts, desk};

/// G5, G11: what is in flight ends, nothing begins, others go on, and the next process finds it as it was.
async fn g5_nothing_begins_before_it_is_resumed<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let runtime = fixture.runtime().await;
    fixture.world.plan("k:ship", [Act::Gate("carrier")]);
    let running = runtime.start(&fixture.saga, "k", Order::of(1)).await.unwrap();
    eventually("it is called", async || (fixture.world.calls_of("k:ship") > 0).then_some(())).await;
    let ann = desk(&fixture);
    assert_eq!(ann.control("k").pause("the carrier called").await.unwrap(), ControlOutcome::Applied);
    assert_eq!(runtime.admin().control("k").pause("so they say").await.unwrap(), ControlOutcome::Already);
    fixture.world.open("carrier");
    for number in 0..20 {
        let outcome = fixture.run(&runtime, &format!("other-{number}")).await;
        assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    }
    let shipped = async || {
        let status = fixture.status(&runtime, "k").await;
        (status.steps[2].phase == StepPhase::Done).then_some(status)
    };
    let status = eventually("what was in flight is recorded", shipped).await;
    assert_eq!((status.summary.status, status.summary.outcome), (Status::Paused, None));
    assert_eq!(status.steps[3].phase, StepPhase::Ready);
    assert_eq!(status.summary.paused.unwrap().actor.as_deref(), Some("ann"));
    assert!(runtime.admin().query().orphaned(9).await.unwrap().is_empty());
    runtime.shutdown().await;
    drop((runtime, running, ann));

    let fixture = fixture.reopened().await;
    let runtime = fixture.runtime().await;
    assert_eq!(fixture.status(&runtime, "k").await.summary.status, Status::Paused, "it outlives the process");
    assert_eq!(desk(&fixture).control("k").resume("all is well").await.unwrap(), ControlOutcome::Applied);
    let outcome = runtime.attach("k").await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    assert_eq!((fixture.store.total("k:book").await, fixture.store.total("k:finish").await), (1, 1));
    let said: Vec<String> = acts(&fixture, &runtime, "k").await.iter().map(ToString::to_string).collect();
    assert_eq!(said, ["pause by ann: the carrier called", "resume by ann: all is well"]);
    runtime.shutdown().await;
}

on_both_stores!(g5_nothing_begins_before_it_is_resumed);
