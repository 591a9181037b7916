//! Lists, counts and the audit of what was forgotten.

use std::collections::BTreeMap;
use std::time::Duration;

use saga_core::key::{Key, Tenant};
use saga_core::store::{Changes, DefinitionId, Failing, Postponed, SagaFilter, SagaId, Sagas, Status, WorkId};

use crate::check::{Failed, Outcome, ensure, ensure_eq};
use crate::fixture::{Begun, Bench, tenant};
use crate::harness::StoreHarness;

async fn listed<H: StoreHarness>(bench: &Bench<H>, filter: &SagaFilter) -> Result<Vec<SagaId>, Failed> {
    Ok(bench.store.list(filter).await?.iter().map(|row| row.id).collect())
}

fn all() -> SagaFilter {
    SagaFilter { limit: 100, ..SagaFilter::default() }
}

async fn start_many<H: StoreHarness>(bench: &Bench<H>, count: usize) -> Result<Vec<Begun>, Failed> {
    let mut begun = Vec::new();
    for number in 0..count {
        begun.push(bench.start(&format!("k-{number}")).await?);
    }
    begun.sort_by_key(|begun| begun.id);
    Ok(begun)
}

pub(crate) async fn pages_by_id_meet_each_saga_once<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = start_many(&bench, 7).await?;
    let expected: Vec<SagaId> = begun.iter().map(|begun| begun.id).collect();
    let mut met = Vec::new();
    let mut filter = SagaFilter { limit: 3, ..all() };
    for _ in 0..4 {
        let page = listed(&bench, &filter).await?;
        ensure!(page.len() <= 3, "a page of at most 3 has {}", page.len());
        filter.after = page.last().copied().or(filter.after);
        met.extend(page);
    }
    ensure_eq!(met, expected, "the sagas of all pages");
    ensure_eq!(listed(&bench, &SagaFilter { limit: 0, ..all() }).await?, [], "a page of none");
    Ok(())
}

pub(crate) async fn a_list_obeys_every_field_of_its_filter<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = start_many(&bench, 3).await?;
    bench.advance(&begun[1], 1, Status::Stuck).await?;
    let mut other = bench.new_saga(&Tenant::default(), "k-other").await?;
    other.definition = DefinitionId { name: "refunds".into(), version: 1 };
    let other_id = other.id;
    bench.start_new(other).await?;
    let stuck = SagaFilter { status: Some(Status::Stuck), ..all() };
    ensure_eq!(listed(&bench, &stuck).await?, [begun[1].id], "the stuck ones");
    let refunds = SagaFilter { definition: Some("refunds".into()), ..all() };
    ensure_eq!(listed(&bench, &refunds).await?, [other_id], "those of one definition");
    let both = SagaFilter { status: Some(Status::Stuck), ..refunds };
    ensure_eq!(listed(&bench, &both).await?, [], "those of which both hold");
    let running = SagaFilter { status: Some(Status::Running), after: Some(begun[0].id), ..all() };
    let mut expected = vec![begun[2].id, other_id];
    expected.sort();
    ensure_eq!(listed(&bench, &running).await?, expected, "the running ones behind the first");

    let mut hosted = bench.new_saga(&Tenant::default(), "k-1").await?;
    hosted.key = Key::from_stored("k-1>ship")?;
    hosted.commands.iter_mut().for_each(|command| command.key = hosted.key.clone());
    bench.start_new(hosted).await?;
    ensure_eq!(listed(&bench, &all()).await?.len(), 5, "all of them");
    let top_level = SagaFilter { top_level: true, ..all() };
    let mut expected = vec![begun[0].id, begun[1].id, begun[2].id, other_id];
    expected.sort();
    ensure_eq!(listed(&bench, &top_level).await?, expected, "those that are no steps of others");
    ensure_eq!(
        listed(&bench, &SagaFilter { top_level: true, ..running }).await?.len(),
        2,
        "the running ones among them"
    );
    Ok(())
}

pub(crate) async fn what_keeps_failing_is_listed<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = start_many(&bench, 4).await?;
    // Of the first saga nothing failed, of the second and the fourth one attempt, of the third ten.
    let failed = [(1, 1, Some("timed out")), (2, 10, Some("no such table")), (3, 10, None)];
    for (index, attempts, error) in failed {
        let error = error.map(str::to_owned);
        let postponed = Postponed { attempts, error, ..begun[index].postponed(Duration::from_hours(1)) };
        bench.apply(Changes { postponed: vec![postponed], ..Changes::default() }).await?;
    }
    let failing = |failing| SagaFilter { failing: Some(failing), ..all() };
    let by_attempts = failing(Failing::DEFAULT);
    ensure_eq!(listed(&bench, &by_attempts).await?, [begun[2].id], "after ten attempts, and not without an error");
    let stuck = SagaFilter { status: Some(Status::Stuck), ..by_attempts.clone() };
    ensure_eq!(listed(&bench, &stuck).await?, [], "the stuck ones among them");
    let none_yet = failing(Failing { attempts: u32::MAX, retrying_for: Duration::from_hours(1) });
    ensure_eq!(listed(&bench, &none_yet).await?, [], "nothing has failed for an hour");
    let by_time = failing(Failing { attempts: u32::MAX, retrying_for: Duration::ZERO });
    ensure_eq!(listed(&bench, &by_time).await?, [begun[1].id, begun[2].id], "what has failed at all");
    let next = SagaFilter { after: Some(begun[1].id), limit: 1, ..by_time };
    ensure_eq!(listed(&bench, &next).await?, [begun[2].id], "the next page");
    Ok(())
}

pub(crate) async fn a_list_is_of_one_tenant<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let own = bench.start("k-1").await?;
    let acme = bench.start_of(&tenant("acme"), "k-1").await?;
    ensure_eq!(listed(&bench, &all()).await?, [own.id], "the sagas of the default tenant");
    let filter = SagaFilter { tenant: tenant("acme"), ..all() };
    ensure_eq!(listed(&bench, &filter).await?, [acme.id], "the sagas of the tenant");
    Ok(())
}

pub(crate) async fn every_saga_is_counted_in_one_status<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = start_many(&bench, 7).await?;
    bench.start_of(&tenant("acme"), "k-1").await?;
    let moves = [(1, Status::Completed), (2, Status::Completed), (3, Status::Compensating), (4, Status::Compensated)];
    for (index, status) in moves {
        bench.advance(&begun[index], 1, status).await?;
    }
    bench.advance(&begun[5], 1, Status::Stuck).await?;
    bench.advance(&begun[6], 1, Status::Paused).await?;
    let counts = bench.store.count(&Tenant::default()).await?;
    let counts: BTreeMap<Status, u64> = counts.into_iter().filter(|(_, count)| *count > 0).collect();
    let expected = [
        (Status::Running, 1),
        (Status::Compensating, 1),
        (Status::Completed, 2),
        (Status::Compensated, 1),
        (Status::Stuck, 1),
        (Status::Paused, 1),
    ];
    ensure_eq!(counts, BTreeMap::from(expected), "the counts");
    Ok(())
}

pub(crate) async fn a_saga_that_waits_for_nothing_is_found<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let running = bench.start_idle("k-running").await?;
    let compensating = bench.start_idle("k-compensating").await?;
    bench.advance(&compensating, 1, Status::Compensating).await?;
    let acme = bench.start_of(&tenant("acme"), "k-1").await?;
    bench.apply(acme.done(1)).await?;
    // Nothing that is to be done waits for a deadline.
    let overdue = bench.start_idle("k-overdue").await?;
    let deadline = overdue.deadline(WorkId(bench.id().await?));
    bench.apply(Changes { commands: vec![deadline], ..Changes::default() }).await?;
    let mut expected = vec![running.id, compensating.id, acme.id, overdue.id];
    expected.sort();
    let mut found = bench.store.orphaned(10).await?;
    found.sort();
    ensure_eq!(found, expected, "the sagas that wait for nothing, of every tenant");
    ensure_eq!(bench.store.orphaned(2).await?.len(), 2, "at most so many");
    Ok(())
}

pub(crate) async fn a_saga_that_waits_for_something_is_not_found<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    bench.start("k-waiting").await?;
    let waiting = [Status::Completed, Status::Compensated, Status::Stuck, Status::Paused];
    for (key, status) in ["k-1", "k-2", "k-3", "k-4"].into_iter().zip(waiting) {
        let begun = bench.start_idle(key).await?;
        bench.advance(&begun, 1, status).await?;
    }
    ensure_eq!(bench.store.orphaned(10).await?, [], "what was found");
    Ok(())
}
