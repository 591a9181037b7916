//! Many tasks at once.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;

use saga_core::key::Tenant;
use saga_core::store::{
    Changes, ClaimRequest, Condition, Ids, Outbox, RecordedOutcome, Records, Sagas, Started, Status, Store, Work,
};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::check::{Failed, Outcome, ensure, ensure_eq};
use crate::fixture::{Begun, Bench, Play, STEP, definition, past_locks, tenant};
use crate::harness::StoreHarness;

pub(super) const TASKS: usize = 8;

/// Runs a task eight times, all beginning at the same moment, and gathers what they answer.
pub(super) async fn at_once<T, F>(task: impl Fn(usize) -> F) -> Result<Vec<T>, Failed>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Failed>> + Send + 'static,
{
    let barrier = Arc::new(Barrier::new(TASKS));
    let mut tasks = JoinSet::new();
    for number in 0..TASKS {
        let (task, barrier) = (task(number), Arc::clone(&barrier));
        tasks.spawn(async move {
            barrier.wait().await;
            task.await
        });
    }
    let mut answers = Vec::new();
    while let Some(answer) = tasks.join_next().await {
        answers.push(answer.map_err(|error| Failed(format!("a task panicked: {error}")))??);
    }
    Ok(answers)
}

pub(crate) async fn ids_differ_among_tasks<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let blocks = at_once(|_| {
        let store = Arc::clone(&bench.store);
        async move { Ok(store.reserve_ids(50).await?) }
    })
    .await?;
    let ids: BTreeSet<i64> = blocks.into_iter().flatten().collect();
    ensure_eq!(ids.len(), TASKS * 50, "the different ids");
    Ok(())
}

pub(crate) async fn one_of_many_starts_is_new<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    for round in 0..10 {
        let key = format!("k-{round}");
        let answers = at_once(|_| {
            let (bench, key) = (bench.clone(), key.clone());
            async move {
                let saga = bench.new_saga(&Tenant::default(), &key).await?;
                let id = saga.id;
                Ok(match bench.start_new(saga).await? {
                    Started::New => (true, id),
                    Started::AlreadyExists(row) => (false, row.id),
                })
            }
        })
        .await?;
        ensure_eq!(answers.iter().filter(|(is_new, _)| *is_new).count(), 1, "how many of the starts of {key} are new");
        let ids: BTreeSet<_> = answers.iter().map(|(_, id)| *id).collect();
        ensure_eq!(ids.len(), 1, "the sagas that the starts of {key} were answered");
    }
    ensure_eq!(bench.claim(bench.lease().await?, 100).await?.work.len(), 10, "the commands of ten sagas");
    Ok(())
}

pub(crate) async fn overlapping_starts_do_not_lock_each_other_out<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let answers = at_once(|number| {
        let bench = bench.clone();
        async move {
            let mut sagas = Vec::new();
            for key in 0..10_usize {
                // Half of the tasks give the same keys the other way round.
                let key = if number % 2 == 0 { key } else { 9 - key };
                sagas.push(bench.new_saga(&tenant("acme"), &format!("k-{key}")).await?);
            }
            let answers = past_locks(|| bench.store.start(sagas.clone())).await?;
            Ok(answers.iter().filter(|answer| matches!(answer, Started::New)).count())
        }
    })
    .await?;
    ensure_eq!(answers.iter().sum::<usize>(), 10, "how many starts of ten keys are new");
    Ok(())
}

pub(crate) async fn many_claims_share_nothing<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    const ROWS: usize = 60;
    for number in 0..ROWS {
        bench.start(&format!("k-{number}")).await?;
    }
    let claimed = at_once(|_| {
        let bench = bench.clone();
        async move {
            let (lease, mut mine) = (bench.lease().await?, Vec::new());
            loop {
                let request = ClaimRequest { lease, limit: 7, definitions: [definition()].into(), takes_over: true };
                let work = bench.store.claim(request).await?.work;
                if work.is_empty() {
                    return Ok(mine);
                }
                mine.extend(work.iter().map(|work| work.work.id));
            }
        }
    })
    .await?;
    let rows: Vec<_> = claimed.into_iter().flatten().collect();
    let different: BTreeSet<_> = rows.iter().collect();
    ensure_eq!((rows.len(), different.len()), (ROWS, ROWS), "the rows that were claimed, and the different ones");
    Ok(())
}

pub(crate) async fn one_of_many_writers_wins<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start_idle("k-1").await?;
    for version in 1..=10_u64 {
        let applied = at_once(|_| {
            let (store, begun) = (Arc::clone(&bench.store), begun.clone());
            let changes = Changes { saga: Some(begun.advance(version, Status::Running)), ..Changes::default() };
            async move { Ok(past_locks(|| store.record(vec![changes.clone()])).await?[0].is_ok()) }
        })
        .await?;
        ensure_eq!(applied.iter().filter(|applied| **applied).count(), 1, "how many writers won version {version}");
    }
    ensure_eq!(bench.saga(&begun).await?.version, 11, "the version");
    Ok(())
}

pub(crate) async fn one_of_many_records_is_inserted<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    for round in 0..10 {
        let begun = bench.start_idle(&format!("k-{round}")).await?;
        let applied = at_once(|number| {
            let (store, begun) = (Arc::clone(&bench.store), begun.clone());
            let outcome = if number % 2 == 0 { RecordedOutcome::Done } else { RecordedOutcome::Cancelled };
            let changes = Changes { records: vec![begun.record(STEP, outcome)], ..Changes::default() };
            async move { Ok(past_locks(|| store.record(vec![changes.clone()])).await?[0].is_ok()) }
        })
        .await?;
        ensure_eq!(applied.iter().filter(|applied| **applied).count(), 1, "how many records were inserted");
    }
    Ok(())
}

/// Runs the step of a claim that several think they hold, and answers whether it took effect.
async fn effect<H: StoreHarness>(bench: Bench<H>, begun: Begun, row: String) -> Result<bool, Failed> {
    let script = bench.script(vec![Play::keep(&row, 1)], vec![begun.done(1)]);
    let seen = script.seen();
    match bench.store.transact(vec![begun.claim()], Box::new(script)).await {
        Ok(()) => Ok(seen().granted == [true]),
        Err(error) => {
            ensure_eq!(error.error.class(), saga_core::store::RetryClass::Transient, "the class of {error:?}");
            Ok(false)
        }
    }
}

pub(crate) async fn a_step_takes_effect_once<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    for round in 0..10 {
        let begun = bench.start(&format!("k-{round}")).await?;
        let effects = at_once(|number| effect(bench.clone(), begun.clone(), format!("row-{round}-{number}"))).await?;
        ensure_eq!(
            effects.iter().filter(|effect| **effect).count(),
            1,
            "how many runs were told that they took effect"
        );
        let mut written = 0;
        for number in 0..TASKS {
            written += usize::from(bench.business(&format!("row-{round}-{number}")).await.is_some());
        }
        ensure_eq!(written, 1, "how many effects are there");
        ensure_eq!(bench.saga(&begun).await?.version, 2, "the version");
    }
    Ok(())
}

pub(crate) async fn a_step_and_its_cancellation_exclude_each_other<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    for round in 0..10 {
        let begun = bench.start(&format!("k-{round}")).await?;
        let happened = at_once(|number| {
            let (bench, begun) = (bench.clone(), begun.clone());
            async move {
                if number % 2 == 0 {
                    return effect(bench, begun, format!("row-{round}-{number}")).await;
                }
                let tombstone = begun.record(STEP, RecordedOutcome::Cancelled);
                let finished = vec![(begun.work, Condition::Held)];
                let cancel = Changes { records: vec![tombstone], finished, ..Changes::default() };
                Ok(past_locks(|| bench.store.record(vec![cancel.clone()])).await?[0].is_ok())
            }
        })
        .await?;
        ensure_eq!(happened.iter().filter(|happened| **happened).count(), 1, "how many of them happened");
        let is_done = bench.outcome_of(&begun, STEP).await? == Some(RecordedOutcome::Done);
        let mut written = false;
        for number in (0..TASKS).step_by(2) {
            written |= bench.business(&format!("row-{round}-{number}")).await.is_some();
        }
        ensure_eq!(written, is_done, "whether there is an effect, by the record");
    }
    Ok(())
}

pub(crate) async fn a_lane_goes_to_one_of_many<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    for number in 0..30 {
        bench.send(&begun, &format!("o-{number}"), &[1]).await?;
    }
    let leased = at_once(|_| {
        let bench = bench.clone();
        async move { Ok(bench.store.lease_lanes(bench.lease().await?, 5).await?) }
    })
    .await?;
    let lanes: Vec<u8> = leased.into_iter().flatten().map(|lane| lane.lane).collect();
    let different: BTreeSet<u8> = lanes.iter().copied().collect();
    ensure!(lanes.len() == different.len(), "a lane was leased to two relays: {lanes:?}");
    Ok(())
}

pub(crate) async fn two_processes_share_no_work<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    for number in 0..40 {
        bench.start(&format!("k-{number}")).await?;
    }
    let beside = Arc::new(bench.beside().await?);
    let claimed = at_once(|number| {
        let store = Arc::clone(if number % 2 == 0 { &bench.store } else { &beside });
        let bench = bench.clone();
        async move {
            let request = ClaimRequest {
                lease: bench.lease().await?,
                limit: 6,
                definitions: [definition()].into(),
                takes_over: true,
            };
            Ok(store.claim(request).await?.work.iter().map(|work| work.work.id).collect::<Vec<_>>())
        }
    })
    .await?;
    let rows: Vec<_> = claimed.into_iter().flatten().collect();
    ensure_eq!(rows.iter().collect::<BTreeSet<_>>().len(), rows.len(), "the different rows");
    ensure!(!rows.is_empty(), "no row was claimed");
    Ok(())
}
