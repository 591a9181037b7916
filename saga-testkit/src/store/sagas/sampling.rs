//! The sample of sagas that have not ended, which a process reads when it starts.

use saga_core::store::{
    Changes, DefinitionId, Definitions, NewRecord, RecordedOutcome, Records, SagaId, SagaWithSteps, Status, StepId,
    WorkKind,
};

use crate::check::{Failed, Outcome, ensure_eq};
use crate::fixture::{Bench, definition, tenant};
use crate::harness::StoreHarness;

async fn sampled<H: StoreHarness>(
    bench: &Bench<H>,
    definitions: &[DefinitionId],
    limit: usize,
) -> Result<Vec<SagaId>, Failed> {
    Ok(bench.store.unfinished(definitions, limit).await?.iter().map(|stored| stored.saga.id).collect())
}

pub(crate) async fn a_sample_has_what_goes_on<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let running = bench.start("k-running").await?;
    let elsewhere = bench.start_of(&tenant("acme"), "k-running").await?;
    let mut expected = vec![running.id, elsewhere.id];
    for (status, goes_on) in [
        (Status::Compensating, true),
        (Status::Paused, true),
        (Status::Stuck, false),
        (Status::Completed, false),
        (Status::Compensated, false),
    ] {
        let begun = bench.start(&format!("k-{}", status.as_str())).await?;
        bench.advance(&begun, 1, status).await?;
        expected.extend(goes_on.then_some(begun.id));
    }
    let mut other = bench.new_saga(&saga_core::Tenant::default(), "k-other").await?;
    other.definition = DefinitionId { version: 2, ..definition() };
    let version_2 = other.definition.clone();
    let other_id = other.id;
    bench.start_new(other).await?;
    expected.sort();
    ensure_eq!(sampled(&bench, &[definition()], 10).await?, expected, "the sagas of one version");
    ensure_eq!(sampled(&bench, std::slice::from_ref(&version_2), 10).await?, [other_id], "those of the other");
    ensure_eq!(sampled(&bench, &[], 10).await?, [], "those of none");
    ensure_eq!(sampled(&bench, &[definition()], 0).await?, [], "none of them");
    expected.push(other_id);
    expected.sort();
    ensure_eq!(sampled(&bench, &[definition(), version_2], 10).await?, expected, "the sagas of both versions");

    let done = NewRecord {
        output: Some(b"7".to_vec()),
        input: Some(b"8".to_vec()),
        ..elsewhere.record("ship", RecordedOutcome::Done)
    };
    let item = NewRecord { step: StepId::from_stored("ship#1"), ..done.clone() };
    let list = NewRecord { step: StepId::from_stored("ship#0"), ..done.clone() };
    let records = vec![done, item, list];
    bench.apply(Changes { records, ..Changes::default() }).await?;
    let sample = bench.store.unfinished(&[definition()], 10).await?;
    let found = |id: SagaId| -> Result<&SagaWithSteps, Failed> {
        let found = sample.iter().find(|stored| stored.saga.id == id);
        found.ok_or_else(|| Failed("the saga is not in the sample".into()))
    };
    let stored = found(elsewhere.id)?;
    ensure_eq!(stored.saga, bench.saga(&elsewhere).await?, "the saga");
    let of_steps = bench.store.records_of_steps(&elsewhere.tenant, &elsewhere.key).await?;
    ensure_eq!(of_steps.len(), 2, "the records of its steps");
    ensure_eq!(stored.records, of_steps, "its records in the sample");
    let work = |stored: &SagaWithSteps| stored.work.iter().map(|row| (row.work.id, row.kind)).collect::<Vec<_>>();
    ensure_eq!(work(stored), [(elsewhere.work.id, WorkKind::Do)], "its work");
    ensure_eq!(found(running.id)?.records, [], "the records of another saga, whose key is the same");
    ensure_eq!(work(found(running.id)?), [(running.work.id, WorkKind::Do)], "the work of the other");
    Ok(())
}

pub(crate) async fn of_many_sagas_the_oldest_and_the_newest_are_read<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let mut ids = Vec::new();
    for number in 0..7 {
        ids.push(bench.start(&format!("k-{number}")).await?.id);
    }
    ids.sort();
    ensure_eq!(sampled(&bench, &[definition()], 7).await?, ids, "all of them");
    let expected = [ids[0], ids[1], ids[5], ids[6]];
    ensure_eq!(sampled(&bench, &[definition()], 4).await?, expected, "two of the oldest and two of the newest");
    ensure_eq!(sampled(&bench, &[definition()], 3).await?, [ids[0], ids[1], ids[6]], "three of them");
    Ok(())
}
