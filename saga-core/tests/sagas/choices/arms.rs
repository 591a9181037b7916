//! Which arm runs, what is read behind it, and what is undone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use saga_core::StepPhase;
use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::saga::Branch;
use saga_core::store::Records;
use saga_core::{Key, Outcome, Output, Outputs, StepContext, StepError, Tenant, saga_step};

use super::shipping::*;

#[tokio::test]
async fn the_first_arm_that_holds_runs_and_no_other() {
    for (order, expected, taken) in [
        (200, vec!["reserve 200", "pack 200", "label box 200", "bill 200, Some(\"box 200\"), None"], Some("parcel")),
        (50, vec!["reserve 50", "bill 50, None, Some(51)"], Some("express")),
        (10, vec!["reserve 10", "bill 10, None, None"], None),
    ] {
        let (log, outcome, status) = run(&shipping(), order).await;
        assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
        assert_eq!(log, expected);
        let choice = &status.steps[1];
        assert_eq!((choice.step.as_str(), choice.arms.join(" ").as_str()), ("shipping", "parcel express"));
        assert_eq!((choice.phase, choice.taken.as_deref()), (StepPhase::Done, taken));
        let passed_by = |name: &str| {
            let step = status.steps.iter().find(|step| step.step == name).unwrap();
            assert_eq!(step.recorded_at.is_none(), step.phase == StepPhase::NotTaken, "{name}");
            step.phase == StepPhase::NotTaken
        };
        let expected = ["pack", "label"].map(|_| taken != Some("parcel"));
        assert_eq!(["pack", "label"].map(passed_by), expected);
        assert_eq!(passed_by("call-courier"), taken != Some("express"));
    }
}

/// G5: the arm that ran is undone, and no other.
#[tokio::test]
async fn g5_what_an_arm_did_is_undone() {
    let (log, outcome, _) = run(&shipping(), 207).await;
    assert!(matches!(outcome, Outcome::Compensated { .. }), "{outcome}");
    assert_eq!(log[..3], ["reserve 207", "pack 207", "label box 207"]);
    assert_eq!(log[3..], ["unlabel box 207", "unpack 207, box 207", "unreserve 207"]);
    let (log, outcome, _) = run(&shipping(), 17).await;
    assert!(matches!(outcome, Outcome::Compensated { .. }), "{outcome}");
    assert_eq!(log, ["reserve 17", "unreserve 17"]);
}

/// It is decided when the saga comes to it, and recorded in that commit: a process that takes the saga up does not ask again.
#[tokio::test]
async fn a_choice_is_made_once() {
    #[saga_step(no_compensation, retry(attempts = 100, base = "1ms", cap = "1ms"), on_exhausted = "compensate")]
    async fn wait_for(_ctx: &StepContext, _order: u32) -> Result<(), StepError> {
        if GATE.load(Ordering::SeqCst) == 0 { Err(StepError::retry("closed")) } else { Ok(()) }
    }
    static GATE: AtomicU32 = AtomicU32::new(0);
    let asked = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&asked);
    let saga = new()
        .step::<reserve>()
        .choose("open-or-shut", |choice| {
            choice
                // It holds the first time only.
                .when("open", move |_: &u32| counted.fetch_add(1, Ordering::SeqCst) == 0, Branch::step::<wait_for>)
                .otherwise(Branch::step::<pack>)
        })
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let first = runtime(&store, &saga).await;
    let running = first.start(&saga, "o-1", 8).await.unwrap();
    while first.status("o-1").await.unwrap().unwrap().steps[2].attempts == 0 {
        tokio::task::yield_now().await;
    }
    first.shutdown().await;
    drop(running);
    GATE.store(1, Ordering::SeqCst);
    let second = runtime(&store, &saga).await;
    let running = second.start(&saga, "o-1", 8).await.unwrap();
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    assert_eq!(log(&store), ["reserve 8"]);
    let records = store.records_of(&Tenant::default(), &Key::new("o-1").unwrap()).await.unwrap();
    let choice = records.iter().find(|record| record.step.as_str() == "open-or-shut").unwrap();
    assert_eq!(choice.output.as_deref(), Some(&b"\"open\""[..]));
    second.shutdown().await;
}

/// A choice that a saga begins with, several behind each other, and one in an arm of another.
#[tokio::test]
async fn choices_stand_first_behind_each_other_and_in_arms() {
    let saga = new()
        .when("is-even", |order: &u32| order.is_multiple_of(2), Branch::step::<reserve>)
        .choose("size", |choice| {
            choice
                .when(
                    "large",
                    |order: &u32| *order >= 100,
                    |branch| {
                        branch.choose("huge", |choice| {
                            choice
                                .when("huge", |order: &u32| *order >= 1000, Branch::step::<pack>)
                                .otherwise(Branch::step::<call_courier>)
                        })
                    },
                )
                .when("none", |order: &u32| *order == 0, |branch| branch)
        })
        .step::<bill>()
        .build()
        .unwrap();
    for (order, expected) in [
        (1001, vec!["pack 1001", "bill 1001, Some(\"box 1001\"), None"]),
        (102, vec!["reserve 102", "bill 102, None, Some(103)"]),
        (0, vec!["reserve 0", "bill 0, None, None"]),
        (3, vec!["bill 3, None, None"]),
    ] {
        let (log, outcome, _) = run(&saga, order).await;
        assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
        assert_eq!(log, expected);
    }
}

/// Arms with a group and a list, and a group whose branches choose.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn arms_hold_groups_and_lists_and_branches_hold_choices() {
    #[saga_step(no_compensation)]
    async fn weigh(_ctx: &StepContext, piece: u32) -> Result<u32, StepError> {
        Ok(piece * 10)
    }
    #[saga_step(no_compensation)]
    async fn sum(
        tx: &mut MemoryConn,
        order: u32,
        weights: Option<Outputs<weigh>>,
        reserved: Option<Output<reserve>>,
    ) -> Result<(), StepError> {
        let (weights, reserved) = (weights.map(|Outputs(list)| list), reserved.map(|Output(reserved)| reserved));
        tx.log(format!("sum {order}: {weights:?} {reserved:?}"));
        Ok(())
    }
    let saga = new()
        .parallel(|group| {
            group
                .branch(|branch| {
                    branch.choose("weighed", |choice| {
                        choice.when(
                            "by-piece",
                            |order: &u32| *order < 5,
                            |branch| {
                                branch.parallel(|group| {
                                    group
                                        .branch(|branch| {
                                            branch.for_each::<weigh, _>(2, |order: &u32| (0..*order).collect())
                                        })
                                        .branch(Branch::step::<call_courier>)
                                })
                            },
                        )
                    })
                })
                .branch(|branch| branch.when("is-even", |order: &u32| order.is_multiple_of(2), Branch::step::<reserve>))
        })
        .step::<sum>()
        .build()
        .unwrap();
    for (order, expected) in [
        (3, "sum 3: Some([0, 10, 20]) None"),
        (4, "sum 4: Some([0, 10, 20, 30]) Some(2)"),
        (6, "sum 6: None Some(3)"),
        (7, "sum 7: None None"),
    ] {
        let (log, outcome, _) = run(&saga, order).await;
        assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
        assert_eq!(log.last().unwrap(), expected);
    }
}

/// A condition that panics concerns its own saga, and a person says how it goes on.
#[tokio::test]
async fn a_condition_that_panics_waits_for_a_person() {
    static IS_BROKEN: AtomicU32 = AtomicU32::new(1);
    let saga = new()
        .step::<reserve>()
        .choose("shipping", |choice| {
            choice
                .when(
                    "parcel",
                    |_: &u32| {
                        assert_eq!(IS_BROKEN.load(Ordering::SeqCst), 0, "no price list");
                        true
                    },
                    Branch::step::<pack>,
                )
                .otherwise(Branch::step::<call_courier>)
        })
        .step::<bill>()
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let runtime = runtime(&store, &saga).await;
    for (order, how) in (1..).zip(["retry", "skip", "skip with"]) {
        let running = runtime.start(&saga, format!("o-{order}"), order).await.unwrap();
        let Outcome::Stuck { step, reason, .. } = running.outcome().await.unwrap() else { panic!("not stuck") };
        assert_eq!(step, "shipping");
        assert!(
            reason.contains("the condition of its arm `parcel`: it panicked") && reason.contains("no price list"),
            "{reason}"
        );
        let revision = runtime.status(format!("o-{order}")).await.unwrap().unwrap().revision;
        let operator = || runtime.admin().control(format!("o-{order}")).at_revision(revision);
        match how {
            "retry" => {
                IS_BROKEN.store(0, Ordering::SeqCst);
                operator().retry("the list is there").await.unwrap();
            }
            "skip" => operator().skip("nobody ships it").await.unwrap(),
            _ => {
                let refused = operator().skip_with(&"pigeon", "lost").await.unwrap_err().to_string();
                assert!(refused.contains("has no arm `pigeon`; it has `parcel`, `otherwise`"), "{refused}");
                let refused = operator().skip_with(&7, "lost").await.unwrap_err().to_string();
                assert!(refused.contains("name the arm that runs"), "{refused}");
                operator().skip_with(&"otherwise", "by courier").await.unwrap();
            }
        }
        assert!(matches!(running.closed().await.unwrap(), Outcome::Completed { .. }));
        IS_BROKEN.store(1, Ordering::SeqCst);
    }
    let billed: Vec<String> = log(&store).into_iter().filter(|entry| entry.starts_with("bill")).collect();
    assert_eq!(billed, ["bill 1, Some(\"box 1\"), None", "bill 2, None, None", "bill 3, None, Some(4)"]);
    runtime.shutdown().await;
}
