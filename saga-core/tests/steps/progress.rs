//! What external steps report of how far they are: who reads it, what it costs, and who may not.
#![cfg(feature = "macros")]

mod hosted;
mod kinds;
mod night;

use std::sync::Arc;
use std::time::Duration;

use saga_core::memory::MemoryStore;
use saga_core::store::{Sagas as _, Work as _};
use saga_core::{Key, Outcome, StepError, Tenant, saga_step};

use crate::progress::night::{
    Break, INTERVAL, Meter, Night, Progress, all_night, assert_completed, kept, metered, nightly, replica, settle,
    settling, slowly, status,
};

#[tokio::test(start_paused = true)]
async fn the_next_attempt_goes_on_where_the_last_one_was() {
    let (store, saga) = (MemoryStore::new(), settling());
    let night = Night::breaking(&[(3, Break::Fails), (5, Break::Panics)]);
    let runtime = replica(&store, &saga, &night).await;
    let outcome = runtime.start(&saga, "n-1", 9).await.unwrap().outcome().await.unwrap();
    assert_completed(&outcome);
    assert_eq!(night.read(), [None, Some(3), Some(5)], "also what was reported right before the end");
    assert_eq!(status(&runtime, "n-1").await[0].progress, None, "it is gone with the end of the step");
    runtime.shutdown().await;
}

/// While the step waits for its next attempt, everybody sees how far it is.
#[tokio::test(start_paused = true)]
async fn progress_is_shown_while_the_step_is_tried() {
    let (store, saga, night) = (MemoryStore::new(), settling(), Night::breaking(&[(3, Break::Fails)]));
    let runtime = replica(&store, &saga, &night).await;
    let running = runtime.start(&saga, "n-1", 9).await.unwrap();
    let progress = loop {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let steps = status(&runtime, "n-1").await;
        if let Some(progress) = steps[0].progress.clone().filter(|_| steps[0].error.is_some()) {
            break progress;
        }
    };
    assert_eq!(progress.report, r#"{"rows":3}"#);
    assert_eq!(progress.read::<Progress>().unwrap(), Progress { rows: 3 });
    assert!(progress.read::<String>().is_err());
    let started_at = runtime.admin().query().status("n-1").await.unwrap().unwrap().summary.started_at;
    assert!(progress.at >= started_at);
    assert_completed(&running.outcome().await.unwrap());
    runtime.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn what_a_dead_process_reported_is_read_by_the_next() {
    let (store, saga) = (MemoryStore::new(), nightly(|saga| saga.step::<all_night>().build().unwrap()));
    let (meter, night) = (Arc::new(Meter::default()), Night::breaking(&[(7, Break::Hangs)]));
    let dead = replica(&store.clone().with_commit_hook(Arc::<Meter>::clone(&meter)), &saga, &night).await;
    dead.start(&saga, "n-1", 9).await.unwrap();
    night.0.stands.notified().await;
    tokio::time::sleep(INTERVAL).await;
    let before = kept(&store, "n-1").await.unwrap();
    assert_eq!(before.1, Progress { rows: 7 }, "the last of an interval is written without another one");
    *meter.is_dead.lock().unwrap() = true;
    let second = replica(&store, &saga, &night).await;
    assert_completed(&second.attach("n-1").await.unwrap().outcome().await.unwrap());
    assert_eq!(night.read(), [None, Some(7)]);
    second.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn of_many_reports_one_an_interval_is_written() {
    let (meter, night) = (Arc::new(Meter::default()), Night::breaking(&[(300, Break::Fails)]));
    let store = metered(&meter);
    let saga = nightly(|saga| saga.step::<slowly>().build().unwrap());
    let runtime = replica(&store, &saga, &night).await;
    let outcome = runtime.start(&saga, "n-1", 300).await.unwrap().outcome().await.unwrap();
    assert_completed(&outcome);
    assert_eq!(night.read(), [None, Some(300)]);
    // 300 reports in three seconds: at once, after one second, after two, and what was left when the attempt failed.
    assert_eq!(meter.count("report"), 4);
    runtime.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn who_reports_nothing_pays_nothing() {
    let (meter, night) = (Arc::new(Meter::default()), Night::default());
    let store = metered(&meter);
    let saga = settling();
    let runtime = replica(&store, &saga, &night).await;
    assert_completed(&runtime.start(&saga, "n-1", 0).await.unwrap().outcome().await.unwrap());
    assert_eq!((meter.count("report"), night.read()), (0, vec![None]));
    // Neither is the last report of a step written that is done by then.
    assert_completed(&runtime.start(&saga, "n-2", 50).await.unwrap().outcome().await.unwrap());
    assert!(meter.count("report") <= 1, "{}", meter.count("report"));
    runtime.shutdown().await;
}

/// The heartbeat of an exclusive step travels with its reports.
#[tokio::test(start_paused = true)]
async fn a_report_renews_the_claim_of_an_exclusive_step() {
    let (meter, night) = (Arc::new(Meter::default()), Night::default());
    let store = metered(&meter);
    let saga = nightly(|saga| saga.step::<all_night>().build().unwrap());
    let (first, second) = (replica(&store, &saga, &night).await, replica(&store, &saga, &night).await);
    let running = first.start(&saga, "n-1", 600).await.unwrap();
    assert_completed(&running.outcome().await.unwrap());
    assert_eq!(night.read(), [None], "in ten leases nobody else began it");
    assert!((280..=302).contains(&meter.count("report")), "one a second: {}", meter.count("report"));
    assert_eq!(meter.count("renew"), 1, "the one in front of the call");
    first.shutdown().await;
    second.shutdown().await;
}

/// Somebody else has the claim: the older call is told so, and what it reports counts for nothing.
#[tokio::test(start_paused = true)]
async fn g7_a_call_that_lost_its_claim_reports_nothing() {
    let (store, night) = (MemoryStore::new(), Night::default());
    let saga = nightly(|saga| saga.step::<slowly>().build().unwrap());
    let runtime = replica(&store, &saga, &night).await;
    let running = runtime.start(&saga, "n-1", 1_000).await.unwrap();
    tokio::time::sleep(INTERVAL * 3 / 2).await;
    let (number, before) = kept(&store, "n-1").await.unwrap();
    let stored = store.saga_with_steps(&Tenant::default(), &Key::new("n-1").unwrap()).await.unwrap().unwrap();
    night.0.breaks.lock().unwrap().insert(before.rows + 1_000, Break::Hangs);
    assert_eq!(store.release_work(&[stored.work[0].work]).await.unwrap(), [true]);
    let lost = stored.work[0].work;
    assert!(!store.report(lost, number + 9, b"{\"rows\":1}", None).await.unwrap());
    assert_completed(&running.outcome().await.unwrap());
    let read = night.read();
    assert_eq!(read.len(), 2, "{read:?}");
    assert!(read[1] >= Some(before.rows) && read[1] < Some(200), "{read:?}, and {before:?} was written");
    runtime.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_report_outlives_a_store_that_is_away() {
    let (meter, night) = (Arc::new(Meter::default()), Night::breaking(&[(3, Break::Fails)]));
    *meter.failing.lock().unwrap() = 6;
    let store = metered(&meter);
    let saga = settling();
    let runtime = replica(&store, &saga, &night).await;
    assert_completed(&runtime.start(&saga, "n-1", 5).await.unwrap().outcome().await.unwrap());
    assert_eq!(night.read(), [None, Some(3)]);
    runtime.shutdown().await;
}

#[saga_step]
async fn announce(_rows: u32) -> Result<(), StepError> {
    Ok(())
}

/// A step behind the pivot that is rejected waits for a person. What it reported waits with it, and is shown.
#[tokio::test(start_paused = true)]
async fn what_a_person_has_tried_again_goes_on_where_it_was() {
    let breaks = [(2, Break::Fails), (3, Break::Fails), (5, Break::Fails), (7, Break::Rejects), (8, Break::Fails)];
    let (store, night) = (MemoryStore::new(), Night::breaking(&breaks));
    let saga = nightly(|saga| saga.step::<announce>().pivot().step::<settle>().build().unwrap());
    let runtime = replica(&store, &saga, &night).await;
    let outcome = runtime.start(&saga, "n-1", 9).await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Stuck { .. }), "{outcome}");
    let step = status(&runtime, "n-1").await.remove(1);
    let progress = step.progress.unwrap();
    assert_eq!((progress.read::<Progress>().unwrap().rows, step.stuck.is_some()), (7, true));
    let seen = runtime.admin().query().status("n-1").await.unwrap().unwrap();
    assert_eq!(progress.at, seen.history.last().unwrap().at);
    runtime.admin().control("n-1").at_revision(seen.revision).retry("the line was mended").await.unwrap();
    assert_completed(&runtime.attach("n-1").await.unwrap().outcome().await.unwrap());
    assert_eq!(night.read(), [None, Some(2), Some(3), Some(5), Some(7), Some(8)]);
    let step = status(&runtime, "n-1").await.remove(1);
    assert_eq!((step.progress, step.stuck), (None, None));
    runtime.shutdown().await;
}
