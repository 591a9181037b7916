//! Runs the sagas of a work.

use std::ops::Range;
use std::time::Duration;

use anyhow::Result;
use saga_core::{Runtime, Saga, Settings};
use saga_postgres::PostgresStore;

use super::locked::Turns;
use super::orders::{self, Order, order};
use super::{batched, hot, locked, portable, refusing, retrying};
use crate::drive::{Expected, drive_to};
use crate::figures::percentile;
use crate::postgres::measure::Done;
use crate::postgres::work::Work;
use crate::postgres::workload::{is_failing, is_refused, steps};

/// How many tenants the works have that have several.
const TENANTS: u32 = 1_000;

/// A runtime with one saga and the default settings.
pub(crate) async fn runtime(url: &str, saga: &Saga<PostgresStore, Order>) -> Result<Runtime<PostgresStore>> {
    runtime_with(url, saga, Turns::default(), |_| ()).await
}

async fn runtime_with(
    url: &str,
    saga: &Saga<PostgresStore, Order>,
    turns: Turns,
    change: impl FnOnce(&mut Settings),
) -> Result<Runtime<PostgresStore>> {
    Ok(Runtime::builder(PostgresStore::connect(url).await?).saga(saga).state(turns).settings(change).start().await?)
}

/// Runs the sagas with these numbers, so many at a time, in one process.
pub(crate) async fn run(url: &str, work: Work, numbers: Range<u32>, in_flight: u32) -> Result<Done> {
    let saga = match work {
        Work::Undo => refusing::saga()?,
        Work::Hot | Work::HotReplicas => hot::saga()?,
        Work::HotLocked | Work::HotLockedReplicas => hot::locked()?,
        Work::Batch => batched::saga()?,
        Work::Retrying => retrying::saga()?,
        Work::Portable => portable::saga()?,
        Work::Locked => locked::saga()?,
        Work::Held => locked::held()?,
        Work::HandedOver => locked::handed_over()?,
        _ => orders::saga()?,
    };
    let expected = match work {
        Work::Undo => |number| if is_refused(number) { Expected::Compensated } else { Expected::Completed },
        Work::Retrying => |number| if is_failing(number) { Expected::Never } else { Expected::Completed },
        _ => |_| Expected::Completed,
    };
    let tenants = matches!(work, Work::Tenants | Work::TenantsApart).then_some(TENANTS);
    let change = |settings: &mut Settings| {
        settings.tenants_share_commits = work == Work::Tenants;
        if work == Work::HandedOver {
            // So seldom that no hand-over is found by it.
            settings.poll_interval = Duration::from_secs(10);
            settings.member_ttl = settings.poll_interval * 6;
        }
    };
    let turns = Turns::default();
    let mut runtimes = Vec::new();
    for _ in 0..work.replicas() {
        runtimes.push(runtime_with(url, &saga, turns.clone(), change).await?);
    }
    let driven = drive_to(&runtimes, &saga, numbers.clone(), in_flight, tenants, order, expected).await?;
    for runtime in runtimes {
        let store = runtime.store().clone();
        runtime.shutdown().await;
        store.close().await;
    }
    let is_handed_over = work == Work::HandedOver;
    let latencies = if is_handed_over { driven.gaps_ms() } else { driven.latencies_ms() };
    let hand_overs = is_handed_over.then(|| driven.hand_overs_ms(&turns.begun()));
    Ok(Done {
        p50_ms: Some(percentile(&latencies, 0.5)),
        p99_ms: Some(percentile(&latencies, 0.99)),
        hand_over_p50_ms: hand_overs.map(|times| percentile(&times, 0.5)),
        longest_pause: Some(driven.longest_pause()),
        ..Done::new(steps(work, numbers), driven.took)
    })
}
