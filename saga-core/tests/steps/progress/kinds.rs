//! Which steps report, and what of it is kept.

use std::time::Duration;

use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::{
    Outcome, Resolved, Runtime, Saga, Settings, State, StepContext, StepError, saga_compensation, saga_resolution,
    saga_step,
};

use crate::progress::night::{Break, Night, Progress, assert_completed, nightly, replica, settle, status};

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
        saga.for_each::<settle, _>(4, |all: &u32| (1..=*all).map(|branch| branch * 10).collect()).build().unwrap()
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

#[saga_step(resolve = find, no_compensation, retry(attempts = 3, base = "1ms"), on_exhausted = "compensate")]
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
