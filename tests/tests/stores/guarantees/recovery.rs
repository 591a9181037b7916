//! G11: what a dead process held.

use std::time::Duration;

use saga_core::memory::MemoryStore;
use saga_core::store::Outbox;
use saga_core::{Outcome, Saga};
use saga_tests::{
    Act, Faults, Fixture, Mail, Order, Shop, When, charge, eventually, on_both_stores, quick, ship, within,
};

use crate::guarantees::{is_compensated, is_completed};

/// G11: What a dead process held goes on elsewhere within one lease and one poll. No waiting saga is forgotten: an audit
/// query finds every saga that is neither ended, stuck, due, leased nor waiting for a named thing.
async fn g11_what_a_dead_process_held_goes_on<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let runtime = fixture.runtime().await;
    for n in 0..5 {
        fixture.world.plan(&format!("k{n}:charge"), [Act::Hang]);
        runtime.start(&fixture.saga, format!("k{n}"), Order::of(1)).await.unwrap();
    }
    eventually("the calls", async || {
        (0..5).all(|n| fixture.world.calls_of(&format!("k{n}:charge")) == 1).then_some(())
    })
    .await;
    assert!(runtime.admin().query().orphaned(9).await.unwrap().is_empty(), "what is leased is not forgotten");
    drop(runtime);
    let fixture = fixture.reopened().await;
    let runtime = fixture.runtime().await;
    for n in 0..5 {
        let outcome = runtime.attach(format!("k{n}")).await.unwrap().outcome().await.unwrap();
        assert!(is_completed(&outcome), "{outcome}");
        assert_eq!(fixture.store.total(&format!("k{n}:book")).await, 1);
    }
    assert!(runtime.admin().query().orphaned(9).await.unwrap().is_empty());
}

/// G11, with a clock: another replica has it within a lease and a poll.
#[tokio::test(start_paused = true)]
async fn g11_another_replica_has_it_within_a_lease_and_a_poll() {
    within(async {
        let fixture = Fixture::<MemoryStore>::new().await;
        let (doomed, healthy) = (fixture.runtime().await, fixture.runtime().await);
        fixture.world.plan("k:charge", [Act::Hang]);
        doomed.start(&fixture.saga, "k", Order::of(1)).await.unwrap();
        eventually("the call", async || (fixture.world.calls_of("k:charge") == 1).then_some(())).await;
        let died = tokio::time::Instant::now();
        drop(doomed);
        eventually("the second call", async || (fixture.world.calls_of("k:charge") == 2).then_some(())).await;
        let mut settings = saga_core::Settings::default();
        quick(&mut settings);
        assert!(died.elapsed() <= settings.lease_ttl + settings.poll_interval, "{:?}", died.elapsed());
        let outcome = healthy.attach("k").await.unwrap().outcome().await.unwrap();
        assert!(is_completed(&outcome), "{outcome}");
    })
    .await;
}

/// G11, G8: a command that ends its process each time is counted before it runs again, and its neighbours are not.
#[tokio::test(start_paused = true)]
async fn g11_poison_is_counted_and_its_neighbours_are_not() {
    within(async {
        let fixture = Fixture::<MemoryStore>::new().await;
        fixture.world.always("poison:charge", Act::Hang);
        let one_call = || fixture.builder().settings(|settings| settings.external_calls_max = 1);
        let mut runtime = one_call().start().await.unwrap();
        runtime.start(&fixture.saga, "poison", Order::of(1)).await.unwrap();
        eventually("the poison", async || (fixture.world.calls_of("poison:charge") == 1).then_some(())).await;
        for n in 0..10 {
            runtime.start(&fixture.saga, format!("k{n}"), Order::of(1)).await.unwrap();
        }
        // One process after the other dies of it.
        for death in 1..=3 {
            drop(runtime);
            runtime = one_call().start().await.unwrap();
            eventually("the next victim", async || {
                (fixture.world.calls_of("poison:charge") == death + 1).then_some(())
            })
            .await;
            let attempts = fixture.status(&runtime, "poison").await.steps[1].attempts;
            assert_eq!(usize::try_from(attempts).unwrap(), death, "the attempt is written down before it runs");
        }
        drop(runtime);
        let runtime = one_call().start().await.unwrap();
        let outcome = runtime.attach("poison").await.unwrap().outcome().await.unwrap();
        assert!(is_compensated(&outcome), "out of attempts, it may have happened: {outcome}");
        assert_eq!(fixture.world.calls_of("poison:charge"), 4, "the first attempt costs no extra write");
        for n in 0..10 {
            let key = format!("k{n}");
            let outcome = runtime.attach(&key).await.unwrap().outcome().await.unwrap();
            assert!(is_completed(&outcome), "{key}: {outcome}");
            for step in fixture.status(&runtime, &key).await.steps {
                assert_eq!(step.attempts, 1, "{key}: {}", step.step);
            }
        }
    })
    .await;
}

/// G11, G8: behind the pivot nothing is out of attempts, yet a command that never did anything but end its process needs
/// a person.
#[tokio::test(start_paused = true)]
async fn g11_poison_behind_the_pivot_needs_a_person() {
    within(async {
        let fixture = Fixture::<MemoryStore>::new().await;
        let saga = Saga::<MemoryStore, ()>::named("pivot").input::<Order>().step::<charge>().pivot();
        let saga = saga.step::<ship>().build().unwrap();
        let start = || fixture.builder().saga(&saga).start();
        fixture.world.always("k:ship", Act::Hang);
        let mut runtime = start().await.unwrap();
        runtime.start(&saga, "k", Order::of(1)).await.unwrap();
        for death in 1..=4 {
            eventually("the next victim", async || (fixture.world.calls_of("k:ship") == death).then_some(())).await;
            drop(runtime);
            runtime = start().await.unwrap();
        }
        let outcome = runtime.attach("k").await.unwrap().outcome().await.unwrap();
        let Outcome::Stuck { step, reason, .. } = &outcome else { panic!("{outcome}") };
        assert_eq!((step.as_str(), reason.as_str()), ("ship", "its process ended during each of its 3 attempts"));
        fixture.world.repair("k:ship");
        let seen = runtime.status("k").await.unwrap().unwrap();
        runtime.admin().control("k").at_revision(seen.revision).retry("repaired").await.unwrap();
        assert!(is_completed(&runtime.attach("k").await.unwrap().closed().await.unwrap()));
    })
    .await;
}

/// G11: a fault of the store that is over does not leave anything to the end of a lease.
#[tokio::test(start_paused = true)]
async fn g11_a_fault_of_the_store_costs_no_lease() {
    const OPERATIONS: [&str; 12] = [
        "start",
        "reserve_ids",
        "transact",
        "record",
        "give_back",
        "depth",
        "read_lane",
        "sent",
        "release_lanes",
        "beat",
        "sagas_by_id",
        "claim",
    ];
    // What was claimed in a commit that did not answer is known to nobody before its lease ends.
    let cases = OPERATIONS.into_iter().flat_map(|operation| [(operation, When::Before), (operation, When::Behind)]);
    for (operation, when) in cases.filter(|case| *case != ("claim", When::Behind)) {
        within(a_fault(operation, when)).await;
    }
}

async fn a_fault(operation: &'static str, when: When) {
    let fixture = Fixture::<MemoryStore>::new().await;
    let (handle, faults) = Faults::on(&fixture.store);
    let (mail, hour) = (Mail::new(), Duration::from_hours(1));
    let builder = fixture.builder_on(handle).transport(mail.clone());
    let runtime = builder.settings(|settings| settings.lease_ttl = hour).start().await.unwrap();
    let began = tokio::time::Instant::now();
    faults.one_fails(operation, 2, when);
    fixture.world.plan("bad:charge", [Act::NotSent, Act::LoseAnswer]);
    fixture.world.plan("bad:ship", [Act::Reject]);
    for key in ["good", "bad"] {
        let running = eventually("a start", async || runtime.start(&fixture.saga, key, Order::of(1)).await.ok()).await;
        let outcome = running.outcome().await.unwrap();
        assert_eq!(is_completed(&outcome), key == "good", "{operation} {when:?}: {outcome}");
    }
    eventually("an empty outbox", async || (fixture.store.depth().await.unwrap().rows == 0).then_some(())).await;
    assert!(began.elapsed() < hour / 60, "{operation} {when:?}: {:?}", began.elapsed());
    assert_eq!((mail.first_accepted("good").len(), mail.first_accepted("bad").len()), (2, 2), "{operation} {when:?}");
    assert_eq!(fixture.store.total("booked").await, 1, "{operation} {when:?}");
}

/// G11: work of a definition that nobody here knows waits untouched, is listed, and goes on where it is known.
async fn g11_work_of_an_unknown_definition_waits<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let old = fixture.runtime().await;
    fixture.world.plan("k:charge", [Act::Hang]);
    old.start(&fixture.saga, "k", Order::of(1)).await.unwrap();
    eventually("the call", async || (fixture.world.calls_of("k:charge") == 1).then_some(())).await;
    drop(old);
    let fixture = fixture.reopened().await;
    let next = Saga::<S, ()>::named("order").input::<Order>().version(2).step::<charge>().build().unwrap();
    let runtime = saga_core::Runtime::builder(fixture.store.clone()).saga(&next).state(fixture.world.clone());
    let runtime = runtime.settings(quick).start().await.unwrap();
    let new = runtime.start(&next, "new", Order::of(1)).await.unwrap();
    assert!(is_completed(&new.outcome().await.unwrap()));
    let known = saga_core::store::DefinitionId { name: "order".into(), version: 2 };
    let unknown = fixture.store.unknown_work(&[known]).await.unwrap();
    assert_eq!(unknown.len(), 1, "{unknown:?}");
    assert_eq!((unknown[0].0.version, unknown[0].1), (1, 1));
    assert_eq!(fixture.world.calls_of("k:charge"), 1);

    let both = fixture.builder().saga(&next).start().await.unwrap();
    assert!(is_completed(&both.attach("k").await.unwrap().outcome().await.unwrap()));
}

/// G11: a retry that is due long after its process has ended is made by whoever runs then.
async fn g11_a_retry_outlives_its_process<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let runtime = fixture.runtime().await;
    fixture.world.plan("k:charge", [Act::Fail]);
    runtime.start(&fixture.saga, "k", Order::of(1)).await.unwrap();
    eventually("the failed attempt", async || (fixture.world.calls_of("k:charge") >= 1).then_some(())).await;
    runtime.shutdown().await;
    let fixture = fixture.reopened().await;
    let runtime = fixture.runtime().await;
    assert!(is_completed(&runtime.attach("k").await.unwrap().outcome().await.unwrap()));
}

on_both_stores!(
    g11_what_a_dead_process_held_goes_on,
    g11_work_of_an_unknown_definition_waits,
    g11_a_retry_outlives_its_process,
);
