//! G3 and G7: calls of the outside world, by replicas that lose their claims in the middle.

use std::sync::Arc;

use saga_core::memory::MemoryStore;
use saga_core::store::{HistoryKind, Status};
use saga_core::{Outcome, Runtime};
use saga_tests::{Act, Fixture, Order, Shop, StoppableEnvironment, eventually, on_both_stores, within};

use crate::guarantees::{is_compensated, is_completed};

/// G3: An external step is called at least once, always with the same key; its outcome is recorded once; a success that
/// arrives late is never thrown away.
async fn g3_every_attempt_has_the_same_key_and_one_outcome_is_recorded<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let runtime = fixture.runtime().await;
    fixture.world.plan("k:charge", [Act::LoseAnswer, Act::NotSent]);
    assert!(is_completed(&fixture.run(&runtime, "k").await));
    assert_eq!(fixture.world.calls(), ["k:book", "k:charge", "k:charge", "k:charge", "k:ship", "k:finish"]);
    assert_eq!(fixture.world.standing("k:charge"), 1);
    let status = fixture.status(&runtime, "k").await;
    assert_eq!((status.steps[1].phase.as_str(), status.steps[1].attempts), ("done", 3));
}

/// G3: a rejection after an attempt without an answer is no answer either: the step is undone.
async fn g3_a_rejection_after_an_unknown_attempt_is_unknown<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let short = |settings: &mut saga_core::Settings| settings.batch_max = 1;
    let runtime = fixture.builder().settings(short).start().await.unwrap();
    fixture.world.plan("k:charge", [Act::LoseAnswer, Act::Reject]);
    let outcome = fixture.run(&runtime, "k").await;
    let Outcome::Compensated { failed_step, reason, .. } = &outcome else { panic!("{outcome}") };
    assert_eq!(failed_step, "charge");
    assert_eq!(reason.message(), "declined (but an earlier attempt ended without an answer)");
    assert_eq!(fixture.world.calls_of("k:charge:undo"), 1);
    assert_eq!((fixture.world.standing("k:charge"), fixture.store.total("booked").await), (0, 0));
}

/// A replica whose timers can be stopped, and a healthy one, on one store.
struct Replicas {
    fixture: Fixture<MemoryStore>,
    sleeper: Runtime<MemoryStore>,
    clock: StoppableEnvironment,
}

impl Replicas {
    /// The sleeper calls `charge` and stops in the middle; another replica takes over.
    async fn with_sleeper_in_charge(acts: [Act; 2]) -> Self {
        let fixture = Fixture::<MemoryStore>::new().await;
        let clock = StoppableEnvironment::new();
        let sleeper = fixture.builder().environment(Arc::new(clock.clone())).start().await.unwrap();
        fixture.world.plan("k:charge", acts);
        sleeper.start(&fixture.saga, "k", Order::of(1)).await.unwrap();
        eventually("the call", async || (fixture.world.calls_of("k:charge") == 1).then_some(())).await;
        clock.stop();
        Self { fixture, sleeper, clock }
    }

    async fn until(&self, runtime: &Runtime<MemoryStore>, status: Status) {
        eventually(status.as_str(), async || {
            (self.fixture.status(runtime, "k").await.summary.status == status).then_some(())
        })
        .await;
    }

    fn called(&self, key: &str) -> usize {
        self.fixture.world.calls_of(key)
    }
}

/// G3: the saga was undone without the success that an older owner reports at last: it is reopened, and the step is
/// undone once more, now with its output and under a key of its own.
#[tokio::test(start_paused = true)]
async fn g3_a_late_success_is_undone_again() {
    within(async {
        let replicas = Replicas::with_sleeper_in_charge([Act::Gate("late"), Act::Reject]).await;
        let fixture = &replicas.fixture;
        let healthy = fixture.runtime().await;
        replicas.until(&healthy, Status::Compensated).await;
        assert_eq!(replicas.called("k:charge"), 2);
        assert_eq!(replicas.called("k:charge:undo"), 1, "it may have happened, so it was undone as far as one knew");
        assert_eq!(fixture.world.standing("k:charge"), 0);

        fixture.world.open("late");
        eventually("the second undo", async || (replicas.called("k:charge:undo#2") == 1).then_some(())).await;
        replicas.until(&healthy, Status::Compensated).await;
        assert_eq!(fixture.world.standing("k:charge"), 0, "the late effect does not stay");
        let status = fixture.status(&healthy, "k").await;
        assert!(status.history.iter().any(|entry| entry.kind == HistoryKind::Late), "{:?}", status.history);
        assert_eq!(fixture.store.total("k:book:undo").await, 1, "what was undone is not undone again");
        replicas.clock.go_on();
        replicas.sleeper.shutdown().await;
    })
    .await;
}

/// G3: the success is reported while the undo still waits for it. That undo is given the output, and no second one follows
/// under another key: the other side would take it for another refund.
#[tokio::test(start_paused = true)]
async fn g3_an_undo_that_knows_of_a_late_success_is_the_only_one() {
    within(async {
        let replicas = Replicas::with_sleeper_in_charge([Act::Gate("late"), Act::Reject]).await;
        let fixture = &replicas.fixture;
        let healthy = fixture.runtime().await;
        replicas.until(&healthy, Status::Compensating).await;
        fixture.world.open("late");
        eventually("the late success", async || {
            let status = fixture.status(&healthy, "k").await;
            status.history.iter().any(|entry| entry.kind == HistoryKind::Late).then_some(())
        })
        .await;
        assert_eq!(replicas.called("k:charge:undo"), 0, "the undo waits for calls that are on their way");
        replicas.until(&healthy, Status::Compensated).await;
        assert_eq!((replicas.called("k:charge:undo"), replicas.called("k:charge:undo#2")), (1, 0));
        assert_eq!(fixture.world.standing("k:charge"), 0);
        replicas.clock.go_on();
        replicas.sleeper.shutdown().await;
    })
    .await;
}

/// G3, G7: the older owner reports its success while the new one is still calling: the new one's rejection is void.
#[tokio::test(start_paused = true)]
async fn g3_a_late_success_outweighs_a_rejection_that_is_not_recorded_yet() {
    within(async {
        let replicas = Replicas::with_sleeper_in_charge([Act::Gate("late"), Act::GateThenReject("second")]).await;
        let fixture = &replicas.fixture;
        let healthy = fixture.runtime().await;
        eventually("the second call", async || (replicas.called("k:charge") == 2).then_some(())).await;
        fixture.world.open("late");
        eventually("the effect", async || (fixture.world.standing("k:charge") == 1).then_some(())).await;
        tokio::task::yield_now().await;
        fixture.world.open("second");
        replicas.until(&healthy, Status::Completed).await;
        assert_eq!((fixture.world.standing("k:charge"), replicas.called("k:charge:undo")), (1, 0));
    })
    .await;
}

/// G7: A replica that lost its claim cannot decide: every decision carries the epoch it was claimed with.
#[tokio::test(start_paused = true)]
async fn g7_a_lost_claim_cannot_decide() {
    within(async {
        let replicas = Replicas::with_sleeper_in_charge([Act::GateThenReject("stale"), Act::Ok]).await;
        let fixture = &replicas.fixture;
        let healthy = fixture.runtime().await;
        replicas.until(&healthy, Status::Completed).await;
        let before = fixture.status(&healthy, "k").await;
        fixture.world.open("stale");
        replicas.clock.go_on();
        // The sleeper has recorded whatever it was going to record when it has ended.
        replicas.sleeper.shutdown().await;
        assert_eq!(fixture.status(&healthy, "k").await, before, "its rejection changed nothing");
        assert_eq!((fixture.world.standing("k:charge"), replicas.called("k:charge:undo")), (1, 0));
    })
    .await;
}

/// G7: the claim is lost while the new owner still works: the stale rejection neither decides nor disturbs it.
#[tokio::test(start_paused = true)]
async fn g7_a_stale_decision_does_not_disturb_the_new_owner() {
    within(async {
        let replicas = Replicas::with_sleeper_in_charge([Act::GateThenReject("stale"), Act::Gate("new")]).await;
        let fixture = &replicas.fixture;
        let healthy = fixture.runtime().await;
        eventually("the second call", async || (replicas.called("k:charge") == 2).then_some(())).await;
        fixture.world.open("stale");
        replicas.clock.go_on();
        replicas.sleeper.shutdown().await;
        assert_eq!(fixture.status(&healthy, "k").await.summary.status, Status::Running);
        fixture.world.open("new");
        replicas.until(&healthy, Status::Completed).await;
        assert_eq!(replicas.called("k:charge"), 2);
        assert!(!is_compensated(&healthy.attach("k").await.unwrap().outcome().await.unwrap()));
    })
    .await;
}

on_both_stores!(
    g3_every_attempt_has_the_same_key_and_one_outcome_is_recorded,
    g3_a_rejection_after_an_unknown_attempt_is_unknown,
);
