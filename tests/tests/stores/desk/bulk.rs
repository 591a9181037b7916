use std::num::NonZeroU32;
use std::time::Duration;

use saga_core::engine::{BatchAction, BatchFilter, BatchPlan, BatchResult, RuntimeError};
use saga_core::store::Status;
use saga_core::{Outcome, Runtime};
use saga_tests::{Act, Fixture, Shop, on_both_stores};

use crate::desk::{acts, desk, ended, stuck_at_ship};

const OFTEN: NonZeroU32 = NonZeroU32::new(1_000).unwrap();

fn keys(plan: &BatchPlan) -> Vec<&str> {
    plan.sagas.iter().map(|planned| planned.key.as_str()).collect()
}

/// Some that are fine, and some that are stuck.
async fn stuck<S: Shop>(fixture: &Fixture<S>, runtime: &Runtime<S>, count: usize) {
    for number in 0..count {
        fixture.run(runtime, &format!("fine-{number}")).await;
        stuck_at_ship(fixture, runtime, &format!("stuck-{number}")).await;
    }
}

fn at_ship() -> BatchFilter {
    let (failed_step, reason) = (Some("ship".to_owned()), Some("connection reset".to_owned()));
    BatchFilter { status: Some(Status::Stuck), failed_step, reason, ..BatchFilter::default() }
}

/// Each is acted on once, however often the plan is carried out, and only if it stands as it was seen.
async fn a_plan_is_carried_out_once<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let runtime = fixture.runtime().await;
    stuck(&fixture, &runtime, 4).await;
    let ann = desk(&fixture);
    let plan = ann.plan(BatchAction::Retry, &at_ship()).await.unwrap();
    assert_eq!(keys(&plan), ["stuck-0", "stuck-1", "stuck-2", "stuck-3"]);
    assert!(plan.sagas.iter().all(|planned| planned.step.as_deref() == Some("ship") && planned.refusal.is_none()));
    let before = fixture.status(&runtime, "stuck-0").await.revision;
    assert_eq!(plan.sagas[0].revision, before, "a plan changes nothing");
    let written = serde_json::to_string(&plan).unwrap();
    let plan: BatchPlan = serde_json::from_str(&written).unwrap();

    // One of them moves before the plan is carried out.
    let revision = fixture.status(&runtime, "stuck-2").await.revision;
    ann.control("stuck-2").at_revision(revision).skip("by hand").await.unwrap();
    ended(&runtime, "stuck-2").await;
    (0..4).for_each(|number| fixture.world.repair(&format!("stuck-{number}:ship")));

    // It is interrupted behind the first.
    let mut first = BatchPlan::clone(&plan);
    first.sagas.truncate(1);
    let done = ann.execute(&first, "the carrier is back", OFTEN, |_, _| ()).await.unwrap();
    assert_eq!(done.done, 1);
    let mut seen = Vec::new();
    let done = ann.execute(&plan, "the carrier is back", OFTEN, |place, result| seen.push((place, result.clone())));
    let done = done.await.unwrap();
    assert_eq!((done.done, done.already, done.refused.len(), done.failed.len()), (2, 1, 1, 0), "{done:?}");
    assert!(done.refused[0].0 == "stuck-2" && done.refused[0].1.contains("has moved since"), "{done:?}");
    assert_eq!((seen.len(), &seen[0], &seen[1]), (4, &(0, BatchResult::Already), &(1, BatchResult::Done)));
    for number in [0, 1, 3] {
        let key = format!("stuck-{number}");
        assert!(matches!(ended(&runtime, &key).await, Outcome::Completed { .. }));
        let acts = acts(&fixture, &runtime, &key).await;
        assert_eq!((acts.len(), acts[0].plan.as_deref(), acts[0].actor.as_deref()), (1, Some(&*plan.id), Some("ann")));
        assert_eq!(fixture.world.calls_of(&format!("{key}:ship")), 4);
    }
    assert_eq!(ann.plan(BatchAction::Retry, &at_ship()).await.unwrap().sagas, []);
}

/// Every field of the filter holds, and what would be refused is said beforehand.
async fn a_plan_is_what_the_filter_says<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let runtime = fixture.runtime().await;
    stuck(&fixture, &runtime, 2).await;
    fixture.world.plan("no:ship", [Act::Reject]);
    fixture.run(&runtime, "no").await;
    let ann = desk(&fixture);
    let planned = async |filter: BatchFilter| ann.plan(BatchAction::Pause, &filter).await.unwrap();
    let all = planned(BatchFilter::default()).await;
    assert_eq!(keys(&all), ["fine-0", "stuck-0", "fine-1", "stuck-1", "no"]);
    assert_eq!(all.sagas[0].refusal.as_deref(), Some("the saga has ended already"));
    assert_eq!(all.sagas[1].refusal, None);
    let failed = |step: &str| BatchFilter { failed_step: Some(step.to_owned()), ..BatchFilter::default() };
    assert_eq!(keys(&planned(failed("ship")).await), ["stuck-0", "stuck-1", "no"]);
    assert_eq!(keys(&planned(failed("charge")).await), [""; 0]);
    let reason = BatchFilter { reason: Some("declined".to_owned()), ..BatchFilter::default() };
    assert_eq!(keys(&planned(reason).await), ["no"]);
    let old = BatchFilter { idle_for: Some(Duration::from_hours(1)), ..BatchFilter::default() };
    assert_eq!(keys(&planned(old).await), [""; 0]);
    let other = BatchFilter { definition: Some("refunds".to_owned()), ..BatchFilter::default() };
    assert_eq!(keys(&planned(other).await), [""; 0]);
    let limited = BatchFilter { limit: Some(2), ..BatchFilter::default() };
    assert_eq!(keys(&planned(limited).await), ["fine-0", "stuck-0"]);

    // What is refused is counted with its reason, and the rest is done.
    let done = ann.execute(&all, "look at them first", OFTEN, |_, _| ()).await.unwrap();
    assert_eq!((done.done, done.refused.len()), (2, 3), "{done:?}");
    let plan = ann.plan(BatchAction::Resume, &BatchFilter::default()).await.unwrap();
    let done = ann.execute(&plan, "seen", OFTEN, |_, _| ()).await.unwrap();
    assert_eq!(done.done, 2);
    let nothing = ann.execute(&all, " ", OFTEN, |_, _| ()).await.unwrap_err();
    assert!(matches!(&nothing, RuntimeError::Plan(problem) if problem.contains("give a reason")), "{nothing}");
}

on_both_stores!(a_plan_is_carried_out_once, a_plan_is_what_the_filter_says);

/// So many a second, by the clock of the environment.
#[tokio::test(start_paused = true)]
async fn a_plan_takes_its_time() {
    let fixture = Fixture::<saga_core::memory::MemoryStore>::new().await;
    let runtime = fixture.runtime().await;
    stuck(&fixture, &runtime, 5).await;
    let ann = desk(&fixture);
    let plan = ann.plan(BatchAction::Skip, &at_ship()).await.unwrap();
    let began = tokio::time::Instant::now();
    let two = NonZeroU32::new(2).unwrap();
    let done = ann.execute(&plan, "by hand", two, |_, _| ()).await.unwrap();
    assert_eq!(done.done, 5);
    assert!((Duration::from_secs(2)..Duration::from_millis(2_500)).contains(&began.elapsed()), "{:?}", began.elapsed());
}
