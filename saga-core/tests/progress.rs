//! What external steps report of how far they are: who reads it, what it costs, and who may not.
#![cfg(feature = "macros")]
#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use saga_core::engine::StepStatus;
use saga_core::env::BoxFuture;
use saga_core::memory::{CommitFate, CommitHook, CommitPoint, MemoryConn, MemoryStore};
use saga_core::store::{Sagas as _, StoreError, StoreErrorKind, Work as _};
use saga_core::{
    Key, Outcome, Resolved, Runtime, Saga, Settings, State, StepContext, StepError, Tenant, saga_compensation,
    saga_resolution, saga_step,
};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

const LEASE: Duration = Duration::from_secs(30);
const INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Progress {
    rows: u32,
}

/// What the calls read, and what they are to do.
#[derive(Clone, Default)]
struct Night(Arc<Inside>);

#[derive(Default)]
struct Inside {
    /// What each call read, by its key.
    read: Mutex<Vec<(String, Option<u32>)>>,
    /// After how many rows the first attempt of each step ends, and how.
    breaks: Mutex<BTreeMap<u32, Break>>,
    stands: Notify,
    given_up: Mutex<u32>,
}

#[derive(Clone, Copy)]
enum Break {
    Fails,
    Panics,
    Rejects,
    Hangs,
}

impl Night {
    fn breaking(breaks: &[(u32, Break)]) -> Self {
        let night = Self::default();
        night.0.breaks.lock().unwrap().extend(breaks.iter().copied());
        night
    }

    fn read(&self) -> Vec<Option<u32>> {
        self.0.read.lock().unwrap().iter().map(|(_, read)| *read).collect()
    }

    /// Goes on where the last attempt was, row by row, and reports each.
    async fn settle(&self, ctx: &StepContext, rows: u32, pause: Duration) -> Result<u32, StepError> {
        let begun = ctx.progress::<Progress>()?.map(|progress| progress.rows);
        self.0.read.lock().unwrap().push((ctx.key().to_owned(), begun));
        for row in begun.unwrap_or(0) + 1..=rows {
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            ctx.report(&Progress { rows: row })?;
            let broken = self.0.breaks.lock().unwrap().remove(&row);
            match broken {
                Some(Break::Fails) => return Err(StepError::retry("the line broke")),
                Some(Break::Panics) => panic!("the line broke"),
                Some(Break::Rejects) => return Err(StepError::reject("the books are closed")),
                Some(Break::Hangs) => {
                    self.0.stands.notify_one();
                    ctx.cancelled().await;
                    *self.0.given_up.lock().unwrap() += 1;
                    return Err(StepError::retry("given up"));
                }
                None => {}
            }
        }
        Ok(rows - begun.unwrap_or(0))
    }
}

#[saga_step(no_compensation, timeout = "20s", retry(attempts = 4, base = "2s", cap = "2s"))]
async fn settle(ctx: &StepContext, rows: u32, State(night): State<Night>) -> Result<u32, StepError> {
    night.settle(ctx, rows, Duration::ZERO).await
}

#[saga_step(no_compensation, timeout = "20s", retry(attempts = 4, base = "2s", cap = "2s"))]
async fn slowly(ctx: &StepContext, rows: u32, State(night): State<Night>) -> Result<u32, StepError> {
    night.settle(ctx, rows, Duration::from_millis(10)).await
}

#[saga_step(exclusive, no_compensation, timeout = "1h", retry(attempts = 4, base = "2s", cap = "2s"))]
async fn all_night(ctx: &StepContext, rows: u32, State(night): State<Night>) -> Result<u32, StepError> {
    night.settle(ctx, rows, Duration::from_millis(500)).await
}

fn nightly<T>(step: impl FnOnce(saga_core::saga::SagaBuilder<MemoryStore, u32>) -> T) -> T {
    step(Saga::named("nightly").input::<u32>())
}

fn settling() -> Saga<MemoryStore, u32> {
    nightly(|saga| saga.step::<settle>().build().unwrap())
}

async fn replica(store: &MemoryStore, saga: &Saga<MemoryStore, u32>, night: &Night) -> Runtime<MemoryStore> {
    let settings = |settings: &mut Settings| {
        settings.lease_ttl = LEASE;
        settings.report_interval = INTERVAL;
    };
    let builder = Runtime::builder(store.clone()).saga(saga).state(night.clone()).settings(settings);
    builder.start().await.unwrap()
}

/// What the store has of the only step that is under way, by number and report.
async fn kept(store: &MemoryStore, key: &str) -> Option<(u64, Progress)> {
    let stored = store.saga_with_steps(&Tenant::default(), &Key::new(key).unwrap()).await.unwrap().unwrap();
    let reported = stored.work.first()?.reported.clone()?;
    Some((reported.number, serde_json::from_slice(&reported.progress).unwrap()))
}

async fn status(runtime: &Runtime<MemoryStore>, key: &str) -> Vec<StepStatus> {
    runtime.inspector().status(key).await.unwrap().unwrap().steps
}

fn assert_completed(outcome: &Outcome) {
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
}

/// Counts the calls of the store by name, and lets some fail.
#[derive(Default)]
struct Meter {
    counts: Mutex<BTreeMap<&'static str, u32>>,
    failing: Mutex<u32>,
    /// Whether the process that has it is dead: no call of the store comes back.
    is_dead: Mutex<bool>,
}

fn metered(meter: &Arc<Meter>) -> MemoryStore {
    MemoryStore::new().with_commit_hook(Arc::<Meter>::clone(meter))
}

impl Meter {
    fn count(&self, operation: &str) -> u32 {
        self.counts.lock().unwrap().get(operation).copied().unwrap_or(0)
    }
}

impl CommitHook for Meter {
    fn at(&self, point: CommitPoint) -> BoxFuture<'static, CommitFate> {
        if *self.is_dead.lock().unwrap() {
            return Box::pin(std::future::pending());
        }
        let mut fate = CommitFate::Proceed;
        if let CommitPoint::Committing(operation) = point {
            *self.counts.lock().unwrap().entry(operation).or_default() += 1;
            let mut failing = self.failing.lock().unwrap();
            if operation == "report" && *failing > 0 {
                *failing -= 1;
                fate = CommitFate::Fail(StoreError::new(StoreErrorKind::Unavailable, "report", "the disk is away"));
            }
        }
        Box::pin(std::future::ready(fate))
    }
}

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
    let started_at = runtime.inspector().status("n-1").await.unwrap().unwrap().summary.started_at;
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
    assert_eq!(store.give_back(&[stored.work[0].work]).await.unwrap(), [true]);
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
    let seen = runtime.inspector().status("n-1").await.unwrap().unwrap();
    assert_eq!(progress.at, seen.history.last().unwrap().at);
    runtime.operator("n-1", seen.revision).unwrap().retry("the line was mended").await.unwrap();
    assert_completed(&runtime.attach("n-1").await.unwrap().outcome().await.unwrap());
    assert_eq!(night.read(), [None, Some(2), Some(3), Some(5), Some(7), Some(8)]);
    let step = status(&runtime, "n-1").await.remove(1);
    assert_eq!((step.progress, step.stuck), (None, None));
    runtime.shutdown().await;
}

#[saga_step(no_compensation)]
async fn verbose(ctx: &StepContext, rows: u32) -> Result<u32, StepError> {
    ctx.report(&"x".repeat(rows as usize))?;
    Ok(rows)
}

#[saga_step(no_compensation)]
async fn in_a_transaction(_tx: &mut MemoryConn, ctx: &StepContext, rows: u32) -> Result<u32, StepError> {
    assert_eq!(ctx.progress::<Progress>()?, None);
    ctx.report(&Progress { rows })?;
    Ok(rows)
}

#[saga_step(no_compensation)]
async fn of_another_type(ctx: &StepContext, rows: u32) -> Result<u32, StepError> {
    if let Some(text) = ctx.progress::<String>()? {
        return Err(StepError::reject(text));
    }
    ctx.report(&Progress { rows })?;
    Err(StepError::retry("the line broke"))
}

/// What cannot be kept is said at once, and waits for a person.
#[tokio::test(start_paused = true)]
async fn a_report_that_cannot_be_kept_says_why() {
    let check = async |saga: Saga<MemoryStore, u32>, rows: u32, says: &str| {
        let runtime = Runtime::builder(MemoryStore::new()).saga(&saga).start().await.unwrap();
        let outcome = runtime.start(&saga, "n-1", rows).await.unwrap().outcome().await.unwrap();
        let Outcome::Stuck { reason, .. } = &outcome else { panic!("{outcome}") };
        assert!(reason.contains(says), "{reason}");
        runtime.shutdown().await;
    };
    let max = u32::try_from(Settings::default().report_bytes_max).unwrap();
    let too_long = format!("it reported {} bytes; `report_bytes_max` allows {max}", max + 3);
    check(nightly(|saga| saga.step::<verbose>().build().unwrap()), max + 1, &too_long).await;
    let saga = nightly(|saga| saga.step::<in_a_transaction>().build().unwrap());
    check(saga, 1, "a step in a transaction reports no progress").await;
    let saga = nightly(|saga| saga.step::<of_another_type>().build().unwrap());
    check(saga, 1, "what an earlier attempt reported cannot be read").await;
}

/// Each item of a list reports for itself.
#[tokio::test(start_paused = true)]
async fn items_report_each_for_itself() {
    let (store, night) = (MemoryStore::new(), Night::breaking(&[(15, Break::Fails), (25, Break::Fails)]));
    let saga = nightly(|saga| {
        saga.for_each_with::<settle>(4, |all| (1..=*all).map(|branch| branch * 10).collect()).build().unwrap()
    });
    let runtime = replica(&store, &saga, &night).await;
    let running = runtime.start(&saga, "n-1", 3).await.unwrap();
    let reports = loop {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let shown = status(&runtime, "n-1").await;
        let items = shown.iter().filter(|step| step.is_item());
        let reports: Vec<_> =
            items.filter_map(|item| Some((item.step.clone(), item.progress.clone()?.report))).collect();
        if reports.len() > 1 {
            break reports;
        }
    };
    assert!(reports.iter().all(|(step, _)| step.starts_with("settle#")), "{reports:?}");
    assert_completed(&running.outcome().await.unwrap());
    let mut read = night.0.read.lock().unwrap().clone();
    read.retain(|(_, read)| read.is_some());
    read.sort();
    let told: Vec<(&str, Option<u32>)> = read.iter().map(|(key, read)| (key.as_str(), *read)).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told.iter().all(|(key, _)| key.starts_with("n-1:settle#")), "{told:?}");
    runtime.shutdown().await;
}

#[saga_step(compensate = unsettle)]
async fn settled(ctx: &StepContext, rows: u32) -> Result<u32, StepError> {
    ctx.report(&Progress { rows })?;
    Ok(rows)
}

#[saga_compensation(timeout = "20s", retry(attempts = 4, base = "2s", cap = "2s"))]
async fn unsettle(ctx: &StepContext, rows: u32, State(night): State<Night>) -> Result<(), StepError> {
    night.settle(ctx, rows, Duration::ZERO).await.map(|_| ())
}

#[saga_step(no_compensation)]
async fn refuse(_rows: u32) -> Result<(), StepError> {
    Err(StepError::reject("not tonight"))
}

/// A compensation begins with nothing of what its step reported.
#[tokio::test(start_paused = true)]
async fn a_compensation_reports_for_itself() {
    let (store, night) = (MemoryStore::new(), Night::breaking(&[(4, Break::Fails)]));
    let saga = nightly(|saga| saga.step::<settled>().step::<refuse>().build().unwrap());
    let runtime = replica(&store, &saga, &night).await;
    let outcome = runtime.start(&saga, "n-1", 9).await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Compensated { .. }), "{outcome}");
    assert_eq!(night.read(), [None, Some(4)]);
    runtime.shutdown().await;
}

#[saga_step(resolve = find, no_compensation, retry(attempts = 3, base = "1ms"))]
async fn exported(ctx: &StepContext, rows: u32, State(night): State<Night>) -> Result<u32, StepError> {
    night.settle(ctx, rows, Duration::ZERO).await
}

#[saga_resolution]
async fn find(ctx: &StepContext, _rows: u32, State(night): State<Night>) -> Result<Resolved<u32>, StepError> {
    assert!(ctx.report(&Progress { rows: 0 }).is_err());
    let read = ctx.progress::<Progress>()?.map(|progress| progress.rows);
    night.0.read.lock().unwrap().push((format!("{} is asked for", ctx.key()), read));
    Ok(Resolved::NotDone)
}

/// A resolution knows how far the step came, and reports nothing itself.
#[tokio::test(start_paused = true)]
async fn a_resolution_reads_what_its_step_reported() {
    let (store, night) = (MemoryStore::new(), Night::breaking(&[(4, Break::Fails)]));
    let saga = nightly(|saga| saga.step::<exported>().build().unwrap());
    let runtime = replica(&store, &saga, &night).await;
    let outcome = runtime.start(&saga, "n-1", 9).await.unwrap().outcome().await.unwrap();
    assert_completed(&outcome);
    assert_eq!(night.read(), [None, Some(4), Some(4)], "the call, the question, the next call");
    runtime.shutdown().await;
}
