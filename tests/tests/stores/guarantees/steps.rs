//! G1 and G2: transactional steps.

use saga_core::memory::MemoryStore;
use saga_tests::{Act, Faults, Fixture, Mail, Order, Shop, When, eventually, on_both_stores, within};

use crate::guarantees::{is_compensated, is_completed};

/// G1: A transactional step's writes, its step record, the saga's progress and all messages it caused commit together or
/// not at all.
async fn g1_what_failed_left_nothing_and_what_succeeded_left_everything<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let mail = Mail::new();
    let runtime = fixture.builder().transport(mail.clone()).start().await.unwrap();
    fixture.world.plan("k:book", [Act::Fail, Act::Panic]);
    fixture.world.plan("k:finish", [Act::Fail]);
    assert!(is_completed(&fixture.run(&runtime, "k").await));
    assert_eq!((fixture.world.calls_of("k:book"), fixture.world.calls_of("k:finish")), (3, 2));
    assert_eq!((fixture.store.total("k:book").await, fixture.store.total("k:finish").await), (1, 1));
    eventually("both messages", async || (mail.accepted().len() == 2).then_some(())).await;

    fixture.world.plan("no:book", [Act::Reject]);
    assert!(is_compensated(&fixture.run(&runtime, "no").await));
    assert_eq!((fixture.store.total("no:book").await, fixture.store.total("booked").await), (0, 1));
    let status = fixture.status(&runtime, "no").await;
    assert_eq!((status.steps[0].phase.as_str(), status.steps[0].error.as_deref()), ("rejected", Some("declined")));
    assert!(mail.offered().iter().all(|message| message.key == "k"));
}

/// G1, where the commit itself fails, or its answer is lost.
async fn g1_with(when: When) {
    let fixture = Fixture::<MemoryStore>::new().await;
    let (handle, faults) = Faults::on(&fixture.store);
    let mail = Mail::new();
    let runtime = fixture.builder_on(handle).transport(mail.clone()).start().await.unwrap();
    faults.one_fails("transact", 2, when);
    assert!(is_completed(&fixture.run(&runtime, "k").await));
    assert!(faults.struck().contains("transact"));
    assert_eq!((fixture.store.total("k:book").await, fixture.store.total("k:finish").await), (1, 1));
    eventually("both messages", async || (mail.accepted().len() >= 2).then_some(())).await;
    assert_eq!(mail.first_accepted("k").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn g1_a_commit_that_failed_left_nothing() {
    within(g1_with(When::Before)).await;
}

#[tokio::test(start_paused = true)]
async fn g1_a_commit_whose_answer_was_lost_left_everything_once() {
    within(g1_with(When::Behind)).await;
}

/// G2: For one step key at most one transactional effect is ever committed, however often its command is delivered, by
/// however many replicas.
async fn g2_an_effect_is_committed_once_among_replicas<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let replica = async || fixture.patient().start().await.unwrap();
    let replicas = [replica().await, replica().await, replica().await];
    let mut running = Vec::new();
    for n in 0..30 {
        // Every replica starts every saga, and some steps fail at first, so that others take them up.
        let key = format!("k{n}");
        if n % 3 == 0 {
            fixture.world.plan(&format!("{key}:book"), [Act::Fail]);
            fixture.world.plan(&format!("{key}:ship"), [if n % 2 == 0 { Act::NotSent } else { Act::Reject }]);
        }
        for replica in &replicas {
            running.push((n, replica.start(&fixture.saga, &key, Order::of(1)).await.unwrap()));
        }
    }
    for (n, running) in running {
        let outcome = running.outcome().await.unwrap();
        let is_undone = n % 6 == 3;
        assert!(if is_undone { is_compensated(&outcome) } else { is_completed(&outcome) }, "k{n}: {outcome}");
    }
    for n in 0..30 {
        let undone = i64::from(n % 6 == 3);
        for (step, times) in [("book", 1), ("book:undo", undone), ("finish", 1 - undone)] {
            assert_eq!(fixture.store.total(&format!("k{n}:{step}")).await, times, "k{n}:{step}");
        }
    }
    assert_eq!(fixture.store.total("booked").await, 25);
}

/// G2: a replica whose answer to a commit was lost, and which is then taken for dead, does not make another one repeat
/// what was committed.
#[tokio::test(start_paused = true)]
async fn g2_what_a_dead_replica_committed_is_not_committed_again() {
    within(async {
        let fixture = Fixture::<MemoryStore>::new().await;
        let (handle, faults) = Faults::on(&fixture.store);
        let doomed = fixture.builder_on(handle).start().await.unwrap();
        faults.one_fails("transact", 1, When::Behind);
        let running = doomed.start(&fixture.saga, "k", Order::of(1)).await.unwrap();
        eventually("the lost answer", async || faults.struck().contains("transact").then_some(())).await;
        drop((running, doomed));
        let runtime = fixture.runtime().await;
        let outcome = runtime.attach("k").await.unwrap().outcome().await.unwrap();
        assert!(is_completed(&outcome), "{outcome}");
        assert_eq!((fixture.store.total("k:book").await, fixture.world.calls_of("k:book")), (1, 1));
    })
    .await;
}

on_both_stores!(
    g1_what_failed_left_nothing_and_what_succeeded_left_everything,
    g2_an_effect_is_committed_once_among_replicas,
);
