//! G5: how sagas end.

use saga_core::store::{SagaFilter, Status};
use saga_core::{Outcome, Saga};
use saga_tests::{Act, Fixture, Order, Shop, book, charge, finish, on_both_stores, ship};

use crate::guarantees::is_completed;

const STEPS: [&str; 4] = ["book", "charge", "ship", "finish"];

/// G5: Every saga with a definition ends completed, compensated or stuck. Compensations run for every step that took
/// effect or may have, in the reverse order of their positions, and for no other. A compensated or cancelled step cannot
/// be done by a late delivery.
async fn g5_what_took_effect_is_undone_in_reverse_and_nothing_else<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let runtime = fixture.runtime().await;
    for failing in 0..=STEPS.len() {
        let key = format!("k{failing}");
        let rejected = STEPS.get(failing).map(|step| format!("{key}:{step}"));
        if let Some(step_key) = &rejected {
            fixture.world.plan(step_key, [Act::Reject]);
        }
        let outcome = fixture.run(&runtime, &key).await;
        let mut expected: Vec<String> = STEPS.iter().take(failing + 1).map(|step| format!("{key}:{step}")).collect();
        if rejected.is_some() {
            let undone = STEPS[..failing].iter().rev().map(|step| format!("{key}:{step}:undo"));
            expected.extend(undone);
            let Outcome::Compensated { failed_step, .. } = &outcome else { panic!("{outcome}") };
            assert_eq!(failed_step, STEPS[failing]);
        } else {
            assert!(is_completed(&outcome), "{outcome}");
        }
        let calls: Vec<String> = fixture.world.calls().into_iter().filter(|call| call.starts_with(&key)).collect();
        assert_eq!(calls, expected);
        let stands = i64::from(rejected.is_none());
        assert_eq!(
            (fixture.world.standing(&format!("{key}:charge")), fixture.world.standing(&format!("{key}:ship"))),
            (stands, stands)
        );
    }
    assert_eq!((fixture.store.total("booked").await, fixture.store.total("finished").await), (1, 1));
    let left = SagaFilter { status: Some(Status::Stuck), ..SagaFilter::default() };
    assert!(runtime.admin().query().list(left).await.unwrap().is_empty());
}

/// G5: a step that may have happened is undone as well, first, and with no output to go by.
async fn g5_what_may_have_taken_effect_is_undone<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let saga = Saga::<S, ()>::named("short").input::<Order>().step::<book>().step::<charge>().step::<finish>();
    let saga = saga.build().unwrap();
    let runtime = fixture.builder().saga(&saga).start().await.unwrap();
    fixture.world.plan("k:charge", [Act::Fail, Act::LoseAnswer, Act::Fail]);
    let outcome = runtime.start(&saga, "k", Order::of(1)).await.unwrap().outcome().await.unwrap();
    assert!(matches!(&outcome, Outcome::Compensated { failed_step, .. } if failed_step == "charge"), "{outcome}");
    let calls = fixture.world.calls();
    assert_eq!(calls[calls.len() - 2..], ["k:charge:undo", "k:book:undo"]);
    assert_eq!((fixture.world.standing("k:charge"), fixture.store.total("booked").await), (0, 0));
}

/// G5: an error that certainly did nothing outside is no reason to undo anything for it.
async fn g5_what_certainly_did_nothing_is_not_undone<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let runtime = fixture.runtime().await;
    fixture.world.plan("k:ship", [Act::NotSent, Act::NotSent, Act::NotSent]);
    let outcome = fixture.run(&runtime, "k").await;
    let Outcome::Compensated { failed_step, reason, .. } = &outcome else { panic!("{outcome}") };
    assert_eq!((failed_step.as_str(), reason.message()), ("ship", "connection refused"));
    assert_eq!(fixture.world.calls_of("k:ship:undo"), 0);
}

/// G5: behind the pivot the saga only goes forward: what is rejected there needs a person, and nothing is undone.
async fn g5_behind_the_pivot_nothing_is_undone<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let saga = Saga::<S, ()>::named("pivot").input::<Order>().step::<book>().step::<charge>().pivot();
    let saga = saga.step::<ship>().step::<finish>().build().unwrap();
    let runtime = fixture.builder().saga(&saga).start().await.unwrap();
    fixture.world.plan("behind:ship", [Act::Reject]);
    let outcome = runtime.start(&saga, "behind", Order::of(1)).await.unwrap().outcome().await.unwrap();
    let Outcome::Stuck { step, reason, .. } = &outcome else { panic!("{outcome}") };
    assert_eq!((step.as_str(), reason.as_str()), ("ship", "rejected after the pivot: declined"));
    assert_eq!(fixture.world.standing("behind:charge"), 1);
    // What fails otherwise is tried beyond the attempts of its policy.
    fixture.world.plan("on:ship", [Act::Fail; 6]);
    let outcome = runtime.start(&saga, "on", Order::of(1)).await.unwrap().outcome().await.unwrap();
    assert!(is_completed(&outcome), "{outcome}");
    assert_eq!(fixture.world.calls_of("on:ship"), 7);
    // The pivot itself is compensated when it was rejected.
    fixture.world.plan("before:charge", [Act::Reject]);
    let outcome = runtime.start(&saga, "before", Order::of(1)).await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Compensated { .. }));
    assert!(!fixture.world.calls().iter().any(|call| call.ends_with(":charge:undo")));
}

on_both_stores!(
    g5_what_took_effect_is_undone_in_reverse_and_nothing_else,
    g5_what_may_have_taken_effect_is_undone,
    g5_what_certainly_did_nothing_is_not_undone,
    g5_behind_the_pivot_nothing_is_undone,
);
