//! What a call reports of how far it is: who may, what is kept, and for how long.

use std::time::Duration;

use saga_core::store::{Changes, Lease, Postponed, Reported, SagaWithSteps, Work, WorkId, WorkRef};

use crate::check::{Outcome, ensure, ensure_eq};
use crate::fixture::{Bench, HOUR};
use crate::harness::StoreHarness;

/// A report as it is compared: its number, and what it says.
fn said(reported: Option<&Reported>) -> Option<(u64, Vec<u8>)> {
    reported.map(|reported| (reported.number, reported.progress.clone()))
}

fn shown(saga: &SagaWithSteps) -> Option<(u64, Vec<u8>)> {
    said(saga.work.first().and_then(|work| work.reported.as_ref()))
}

fn report(number: u64, progress: &[u8]) -> (u64, Vec<u8>) {
    (number, progress.to_vec())
}

pub(crate) async fn a_report_stays_on_the_row<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let first = bench.claim_one(bench.lease().await?).await?;
    ensure_eq!(said(first.reported.as_ref()), None, "what was reported of a new row");
    let progress = r#"{"rows":40,"of":"Zürich"}"#.as_bytes();
    ensure!(bench.store.report(first.work, 1, progress, None).await?, "the row is there, and the report was not kept");
    let saga = bench.whole(&begun).await?;
    ensure_eq!(shown(&saga), Some(report(1, progress)), "the report that is shown");
    ensure_eq!((saga.work[0].work, saga.work[0].attempts), (first.work, 0), "the row, its epoch and its attempts");
    ensure_eq!(saga.saga.version, 1, "the version of a saga of which something was reported");

    ensure_eq!(bench.store.release_work(&[first.work]).await?, [true], "whether the row was freed");
    let second = bench.claim_one(bench.short_lease().await?).await?;
    ensure_eq!(
        said(second.reported.as_ref()),
        Some(report(1, progress)),
        "the report behind a row that was given back"
    );
    bench.outlast_lease().await;
    let third = bench.claim_one(bench.lease().await?).await?;
    ensure_eq!(said(third.reported.as_ref()), Some(report(1, progress)), "the report behind an owner that vanished");
    ensure!(third.recovered, "a report made an owner that vanished forgotten");
    let postponed = Postponed { work: third.work, ..begun.postponed(Duration::ZERO) };
    bench.apply(Changes { postponed: vec![postponed], ..Changes::default() }).await?;
    let bench = bench.reopen().await?;
    let fourth = bench.claim_one(bench.lease().await?).await?;
    ensure_eq!(
        said(fourth.reported.as_ref()),
        Some(report(1, progress)),
        "the report behind an attempt, and a reopening"
    );
    Ok(())
}

pub(crate) async fn a_report_has_the_time_of_its_statement<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let work = bench.claim_one(bench.lease().await?).await?.work;
    let pause = bench.harness.timing().lease;
    let mut times = Vec::new();
    for number in 1..=2 {
        bench.store.report(work, number, b"1", None).await?;
        times.extend(bench.whole(&begun).await?.work[0].reported.as_ref().map(|reported| reported.at));
        bench.pass(pause).await;
    }
    let started_at = bench.saga(&begun).await?.started_at;
    ensure!(times.len() == 2 && started_at <= times[0], "they were kept when they were reported: {times:?}");
    let micros = u64::try_from(times[1].0 - times[0].0).unwrap_or_default();
    ensure!(Duration::from_micros(micros) >= pause, "the second was kept {pause:?} behind the first: {times:?}");
    Ok(())
}

pub(crate) async fn a_lost_row_takes_no_report<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let short = bench.short_lease().await?;
    let lost = bench.claim_one(short).await?;
    ensure!(bench.store.report(lost.work, 1, b"1", None).await?, "the owner could not report");
    bench.outlast_lease().await;
    ensure!(
        bench.store.report(lost.work, 2, b"2", None).await?,
        "no other process has the row, and its owner cannot report"
    );
    let taken = bench.claim_one(bench.lease().await?).await?;
    let lease = Some(Lease { ttl: HOUR, ..short });
    ensure!(!bench.store.report(lost.work, 9, b"9", lease).await?, "an older owner's report was kept");
    ensure_eq!(shown(&bench.whole(&begun).await?), Some(report(2, b"2")), "the report behind an older owner's");
    ensure!(bench.store.report(taken.work, 3, b"3", None).await?, "the new owner could not report");
    ensure_eq!(shown(&bench.whole(&begun).await?), Some(report(3, b"3")), "the new owner's report");
    let absent = WorkRef { id: WorkId(bench.id().await?), epoch: 1 };
    ensure!(!bench.store.report(absent, 1, b"1", None).await?, "something was reported of no row");
    Ok(())
}

pub(crate) async fn an_earlier_report_does_not_replace_a_later_one<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let work = bench.claim_one(bench.lease().await?).await?.work;
    ensure!(bench.store.report(work, 2, b"later", None).await?, "the report was not kept");
    ensure!(!bench.store.report(work, 1, b"earlier", None).await?, "a report was kept behind one of a higher number");
    ensure_eq!(shown(&bench.whole(&begun).await?), Some(report(2, b"later")), "the report that stands");
    ensure!(bench.store.report(work, 2, b"later", None).await?, "the same report could not be made again");
    ensure_eq!(shown(&bench.whole(&begun).await?), Some(report(2, b"later")), "the report behind its repetition");
    Ok(())
}

pub(crate) async fn a_report_with_a_lease_renews_it<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    for key in ["k-1", "k-2", "k-3"] {
        bench.start(key).await?;
    }
    let short = bench.short_lease().await?;
    let work: Vec<WorkRef> = bench.claim(short, 10).await?.work.iter().map(|work| work.work).collect();
    let lease = Some(Lease { ttl: HOUR, ..short });
    ensure!(bench.store.report(work[0], 1, b"1", lease).await?, "a report with a lease was not kept");
    ensure!(bench.store.report(work[1], 2, b"2", None).await?, "a report without a lease was not kept");
    bench.store.report(work[2], 2, b"2", None).await?;
    ensure!(!bench.store.report(work[2], 1, b"1", lease).await?, "an earlier report was kept");
    bench.outlast_lease().await;
    let mut free: Vec<_> = bench.claim(bench.lease().await?, 10).await?.work.iter().map(|work| work.work.id).collect();
    free.sort_unstable();
    ensure_eq!(free, [work[1].id, work[2].id], "the rows whose leases no report renewed");
    Ok(())
}
