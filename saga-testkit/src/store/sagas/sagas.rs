//! Ids, and the starting of sagas.

use std::collections::BTreeSet;

use saga_core::key::Tenant;
use saga_core::store::{
    Changes, Ids, NewSaga, RecordedOutcome, Records, SagaId, SagaProgress, Sagas, Started, Status, StepId, WorkId,
};

use crate::check::{Failed, Outcome, ensure, ensure_eq};
use crate::fixture::{Begun, Bench, STEP, name, tenant};
use crate::harness::StoreHarness;

pub(crate) async fn ids_are_above_zero_and_never_given_twice<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let mut seen = BTreeSet::new();
    for count in [1, 1000, 1, 64] {
        let ids = bench.store.reserve_ids(count).await?;
        ensure_eq!(ids.end - ids.start, i64::from(count), "the size of the block");
        for id in ids {
            ensure!(id > 0, "id {id} is not above zero");
            ensure!(seen.insert(id), "id {id} was given twice");
        }
    }
    Ok(())
}

pub(crate) async fn ids_are_not_given_again_by_the_next_process<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let before = bench.store.reserve_ids(100).await?;
    let bench = bench.reopen().await?;
    let after = bench.store.reserve_ids(100).await?;
    ensure!(after.start >= before.end || after.end <= before.start, "{after:?} was given behind {before:?}");
    Ok(())
}

pub(crate) async fn start_keeps_all_that_it_was_given<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let saga = bench.new_saga(&tenant("acme"), "k-1").await?;
    let started = bench.start_new(saga.clone()).await?;
    ensure!(matches!(started, Started::New), "a new key answered {started:?}");
    let begun = Begun::of(&saga, saga.commands[0].id);
    let row = bench.saga(&begun).await?;
    ensure_eq!(row.version, 1, "the version of a new saga");
    ensure_eq!(row.status, Status::Running, "the status of a new saga");
    ensure_eq!((row.id, &row.tenant, &row.key), (saga.id, &saga.tenant, &saga.key), "whose saga it is");
    ensure_eq!((&row.definition, row.digest), (&saga.definition, saga.digest), "the definition");
    ensure_eq!((&row.input, &row.input_hash), (&saga.input, &saga.input_hash), "the input");
    ensure_eq!(row.state, saga.state, "the state");
    ensure_eq!(row.ended_at, None, "the end of a new saga");
    ensure_eq!(row.started_at, row.advanced_at, "a new saga was last advanced when it started");
    let claimed = bench.claim_one(bench.lease().await?).await?;
    ensure_eq!(claimed.work.id, begun.work.id, "the command that can be claimed");
    Ok(())
}

pub(crate) async fn a_started_saga_outlives_its_process<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let before = bench.saga(&begun).await?;
    let bench = bench.reopen().await?;
    ensure_eq!(bench.saga(&begun).await?, before, "the saga behind a reopening");
    let claimed = bench.claim_one(bench.lease().await?).await?;
    ensure_eq!(claimed.work.id, begun.work.id, "the command behind a reopening");
    Ok(())
}

pub(crate) async fn a_leased_first_command_belongs_to_its_owner<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let mut saga = bench.new_saga(&Tenant::default(), "k-1").await?;
    let lease = bench.lease().await?;
    saga.commands[0].lease = Some(lease);
    let begun = Begun::of(&saga, saga.commands[0].id);
    bench.start_new(saga).await?;
    let claimed = bench.claim(bench.lease().await?, 10).await?.work;
    ensure!(claimed.is_empty(), "a command that was inserted with a lease was given to another: {claimed:?}");
    ensure_eq!(bench.whole(&begun).await?.work[0].owner, Some(lease.owner), "the owner");
    bench.apply(begun.done(1)).await
}

pub(crate) async fn every_command_of_a_start_is_kept<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let mut saga = bench.new_saga(&Tenant::default(), "k-1").await?;
    let begun = Begun::of(&saga, saga.commands[0].id);
    let second = begun.command(WorkId(bench.id().await?), "charge");
    saga.commands.push(second);
    bench.start_new(saga).await?;
    let steps = bench.claim(bench.lease().await?, 10).await?.work;
    let steps: BTreeSet<&str> = steps.iter().map(|work| work.step.as_str()).collect();
    ensure_eq!(steps, BTreeSet::from(["charge", STEP]), "the commands of the start");
    Ok(())
}

/// A second saga of the same key that differs in all else.
async fn rival<H: StoreHarness>(bench: &Bench<H>, key: &str) -> Result<NewSaga, Failed> {
    let mut rival = bench.new_saga(&Tenant::default(), key).await?;
    rival.input = b"other".to_vec();
    rival.input_hash = vec![9];
    rival.state = b"other state".to_vec();
    Ok(rival)
}

pub(crate) async fn a_second_start_gets_the_stored_saga<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let stored = bench.saga(&begun).await?;
    let Started::AlreadyExists(known) = bench.start_new(rival(&bench, "k-1").await?).await? else {
        return Err(Failed("a taken key was started again".into()));
    };
    ensure_eq!(*known, stored, "what the second start was answered");
    Ok(())
}

pub(crate) async fn a_second_start_changes_nothing<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let stored = bench.saga(&begun).await?;
    let rival = rival(&bench, "k-1").await?;
    let rival_id = rival.id;
    bench.start_new(rival).await?;
    ensure_eq!(bench.saga(&begun).await?, stored, "the saga behind a second start");
    ensure_eq!(bench.store.sagas_by_id(&[rival_id]).await?, [], "the second saga");
    let claimed = bench.claim_one(bench.lease().await?).await?;
    ensure_eq!(claimed.work.id, begun.work.id, "the only command");
    Ok(())
}

pub(crate) async fn the_same_key_twice_in_one_call<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let first = bench.new_saga(&Tenant::default(), "k-1").await?;
    let second = rival(&bench, "k-1").await?;
    let id = first.id;
    let answers = bench.store.start(vec![first, second]).await?;
    let [Started::New, Started::AlreadyExists(known)] = &answers[..] else {
        return Err(Failed(format!("expected the first to be new and the second known, got {answers:?}")));
    };
    ensure_eq!(known.id, id, "the saga that the second was answered");
    bench.claim_one(bench.lease().await?).await.map(drop)
}

pub(crate) async fn a_key_stays_taken_when_its_saga_has_ended<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let ended = Changes { saga: Some(begun.advance(1, Status::Completed)), ..begun.done(1) };
    bench.apply(ended).await?;
    let bench = bench.reopen().await?;
    let Started::AlreadyExists(known) = bench.start_new(rival(&bench, "k-1").await?).await? else {
        return Err(Failed("the key of an ended saga was started again".into()));
    };
    ensure_eq!((known.id, known.status), (begun.id, Status::Completed), "the saga that holds the key");
    Ok(())
}

pub(crate) async fn answers_to_a_start_come_in_order<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let taken = bench.start("k-2").await?;
    let mut sagas = Vec::new();
    for key in ["k-1", "k-2", "k-3", "k-4"] {
        sagas.push(rival(&bench, key).await?);
    }
    let answers = bench.store.start(sagas).await?;
    let [Started::New, Started::AlreadyExists(known), Started::New, Started::New] = &answers[..] else {
        return Err(Failed(format!("expected new, known, new, new; got {answers:?}")));
    };
    ensure_eq!(known.id, taken.id, "the saga that was known");
    for key in ["k-1", "k-3", "k-4"] {
        ensure!(bench.store.saga(&Tenant::default(), &name(key)).await?.is_some(), "{key} was not started");
    }
    let claimed = bench.claim(bench.lease().await?, 10).await?.work;
    ensure_eq!(claimed.len(), 4, "the commands of four sagas");
    Ok(())
}

pub(crate) async fn an_empty_call_does_nothing<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    ensure!(bench.store.start(Vec::new()).await?.is_empty(), "no saga was started, and something was answered");
    ensure!(bench.store.record(Vec::new()).await?.is_empty(), "no change was recorded, and something was answered");
    Ok(())
}

pub(crate) async fn one_key_of_two_tenants_is_two_sagas<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let (acme, umbrella) = (tenant("acme"), tenant("umbrella"));
    let one = bench.start_of(&acme, "k-1").await?;
    let two = bench.start_of(&umbrella, "k-1").await?;
    let three = bench.start("k-1").await?;
    for begun in [&one, &two, &three] {
        ensure_eq!(bench.saga(begun).await?.id, begun.id, "the saga of tenant {:?}", begun.tenant.as_str());
    }
    let record = |begun: &Begun| Changes { ..begun.done(1) };
    bench.apply(record(&one)).await?;
    ensure_eq!(bench.outcome_of(&one, STEP).await?, Some(RecordedOutcome::Done), "the record of the one tenant");
    ensure_eq!(bench.outcome_of(&two, STEP).await?, None, "the record of the other tenant");
    // The same step key of the other tenant is not taken by that record.
    bench.apply(record(&two)).await
}

pub(crate) async fn no_read_crosses_tenants<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let (acme, umbrella) = (tenant("acme"), tenant("umbrella"));
    let begun = bench.start_of(&acme, "k-1").await?;
    bench.apply(begun.done(1)).await?;
    let key = name("k-1");
    for other in [&umbrella, &Tenant::default()] {
        ensure!(bench.store.saga(other, &key).await?.is_none(), "`saga` showed another tenant's saga");
        ensure!(bench.store.saga_with_steps(other, &key).await?.is_none(), "`saga_with_steps` showed one");
        ensure!(bench.store.records_of(other, &key).await?.is_empty(), "`records_of` showed another tenant's record");
        let record = bench.store.record_of(other, &key, &StepId::doing(STEP)).await?;
        ensure!(record.is_none(), "`record_of` showed another tenant's record");
        let counts = bench.store.count(other).await?;
        ensure!(counts.iter().all(|(_, count)| *count == 0), "`count` counted another tenant's saga: {counts:?}");
    }
    Ok(())
}

pub(crate) async fn progress_is_that_of_the_saga<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let (one, two) = (bench.start("k-1").await?, bench.start("k-2").await?);
    bench.advance(&two, 1, Status::Stuck).await?;
    let absent = SagaId(bench.id().await?);
    let mut standings = bench.store.progress(&[two.id, absent, one.id]).await?;
    standings.sort_by_key(|standing| standing.saga);
    let mut expected = [(one.id, Status::Running, 1), (two.id, Status::Stuck, 2)];
    expected.sort_by_key(|(saga, ..)| *saga);
    let expected = expected.map(|(saga, status, version)| SagaProgress { saga, status, version });
    ensure_eq!(standings, expected, "how far the two that there are stand");
    ensure_eq!(bench.store.progress(&[]).await?, [], "the standings of no ids");
    Ok(())
}

pub(crate) async fn sagas_by_id_finds_those_that_exist<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let one = bench.start("k-1").await?;
    let two = bench.start_of(&tenant("acme"), "k-1").await?;
    let absent = SagaId(bench.id().await?);
    let rows = bench.store.sagas_by_id(&[two.id, absent, one.id]).await?;
    let found: BTreeSet<SagaId> = rows.iter().map(|row| row.id).collect();
    ensure_eq!((rows.len(), found), (2, BTreeSet::from([one.id, two.id])), "the sagas of these ids");
    ensure_eq!(bench.store.sagas_by_id(&[]).await?, [], "the sagas of no ids");
    Ok(())
}
