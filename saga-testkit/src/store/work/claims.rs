//! What a claim takes, and what it leaves.

use std::collections::BTreeSet;
use std::time::Duration;

use saga_core::key::Tenant;
use saga_core::store::{
    Changes, ClaimRequest, Condition, DefinitionId, NewRecord, NewWork, RecordedOutcome, Records, StepId, Work, WorkId,
    WorkKind, WorkRef,
};

use crate::check::{Failed, Outcome, ensure, ensure_eq};
use crate::fixture::{Begun, Bench, HOUR, OTHER, STEP, definition, tenant};
use crate::harness::StoreHarness;

pub(crate) async fn a_claim_gives_the_next_epoch_and_the_owner<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let lease = bench.lease().await?;
    let claimed = bench.claim_one(lease).await?;
    ensure_eq!(claimed.work, WorkRef { id: begun.work.id, epoch: 2 }, "the row and its epoch");
    ensure_eq!(bench.whole(&begun).await?.work[0].owner, Some(lease.owner), "the owner");
    bench.apply(begun.with_work(claimed.work).done(1)).await
}

pub(crate) async fn a_claim_brings_all_that_is_needed<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start_idle("k-1").await?;
    let mut done = Begun::done(&begun, 1);
    done.finished.clear();
    let item = begun.record(STEP, RecordedOutcome::Done);
    done.records.push(NewRecord { step: StepId::of_item(STEP, 1), position: 2, ..item });
    // The saga of another tenant under the same key has another record.
    let namesake = bench.start_idle_of(&tenant("acme"), "k-1").await?;
    let records = vec![namesake.record("refund", RecordedOutcome::Done)];
    bench.apply(Changes { records, ..Changes::default() }).await?;
    let ids = [bench.id().await?, bench.id().await?];
    let mut mapped = begun.command(WorkId(ids[0]), OTHER);
    mapped.payload = Some(vec![0, 255, 10]);
    let mut undo = begun.command(WorkId(ids[1]), STEP);
    undo.kind = WorkKind::Undo;
    undo.step = StepId::undoing(STEP, 2);
    bench.apply(Changes { commands: vec![mapped, undo], ..done }).await?;
    let claimed = bench.claim(bench.lease().await?, 10).await?;
    ensure_eq!(claimed.work.len(), 2, "two rows were claimed");
    ensure_eq!(claimed.sagas.len(), 1, "the sagas of two rows of one saga, each once");
    let (saga, records) = &claimed.sagas[0];
    ensure_eq!(saga, &bench.saga(&begun).await?, "the saga");
    let steps: Vec<&str> = records.iter().map(|record| record.step.as_str()).collect();
    ensure_eq!(steps, [STEP], "the steps of its records");
    ensure_eq!(records, &bench.store.records_of_steps(&begun.tenant, &begun.key).await?, "its records");
    for work in &claimed.work {
        let is_undo = work.work.id == WorkId(ids[1]);
        let expected = if is_undo { (WorkKind::Undo, "reserve:undo#2") } else { (WorkKind::Do, OTHER) };
        ensure_eq!((work.kind, work.step.as_str()), expected, "what the row asks for");
        ensure_eq!(work.payload, if is_undo { None } else { Some(vec![0, 255, 10]) }, "the mapped input");
        ensure_eq!(
            (work.saga, work.attempts, work.in_doubt, work.recovered),
            (begun.id, 0, false, false),
            "a first claim"
        );
        ensure!(work.retrying_for.is_none() && work.late.is_none(), "a first claim has no past: {work:?}");
    }
    Ok(())
}

pub(crate) async fn work_that_is_not_due_is_left<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start_idle("k-1").await?;
    let mut later = begun.command(WorkId(bench.id().await?), STEP);
    later.due_in = HOUR;
    bench.apply(Changes { commands: vec![later], ..Changes::default() }).await?;
    // A saga that begins later is one that is started with such a row.
    let mut saga = bench.new_saga(&Tenant::default(), "k-2").await?;
    saga.commands[0].due_in = HOUR;
    bench.start_new(saga).await?;
    let claimed = bench.claim(bench.lease().await?, 10).await?;
    ensure!(claimed.work.is_empty(), "a row was claimed an hour before it is due: {:?}", claimed.work);
    let next = claimed.next_due_in.unwrap_or_default();
    ensure!(next <= HOUR && next > HOUR / 2, "the next row is due in about an hour, not in {next:?}");
    Ok(())
}

/// A deadline is of no step: it is claimed though every step has its record, and waits beside their rows.
pub(crate) async fn a_deadline_is_claimed_like_work<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let due = NewWork { due_in: Duration::ZERO, ..begun.deadline(WorkId(bench.id().await?)) };
    let later = begun.deadline(WorkId(bench.id().await?));
    let id = due.id;
    bench.apply(Changes { commands: vec![due, later], ..Changes::default() }).await?;
    let claimed = bench.claim(bench.lease().await?, 10).await?;
    ensure_eq!(claimed.work.len(), 2, "the rows that are due: the step's and the deadline's");
    bench
        .apply(
            begun
                .with_work(
                    claimed.work.iter().find(|work| work.work.id == begun.work.id).map_or(begun.work, |work| work.work),
                )
                .done(1),
        )
        .await?;
    let row = claimed.work.iter().find(|work| work.work.id == id);
    let row = row.ok_or_else(|| Failed("the row of the deadline was not claimed".into()))?;
    ensure_eq!((row.kind, row.step.as_str()), (WorkKind::Deadline, ":deadline"), "what the row asks for");
    bench.store.release_work(&[row.work]).await?;
    let again = bench.claim_one(bench.lease().await?).await?;
    ensure_eq!((again.work.id, again.recovered), (id, false), "the row, when its step has a record");
    Ok(())
}

pub(crate) async fn the_clock_is_the_one_that_decides<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let before = bench.store.now().await?;
    let begun = bench.start_idle("k-1").await?;
    bench.apply(Changes { commands: vec![begun.deadline(WorkId(bench.id().await?))], ..Changes::default() }).await?;
    let after = bench.store.now().await?;
    let whole = bench.whole(&begun).await?;
    let hour = i64::try_from(HOUR.as_micros()).unwrap_or(i64::MAX);
    let inserted_at = whole.work[0].due_at.0 - hour;
    ensure!(before.0 <= inserted_at && inserted_at <= after.0, "{before:?} <= {inserted_at} <= {after:?}");
    bench.pass(bench.harness.timing().lease).await;
    ensure!(bench.store.now().await? > after, "the clock stands still");
    Ok(())
}

pub(crate) async fn work_falls_due<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start_idle("k-1").await?;
    let mut later = begun.command(WorkId(bench.id().await?), STEP);
    later.due_in = bench.harness.timing().lease;
    bench.apply(Changes { commands: vec![later], ..Changes::default() }).await?;
    bench.outlast_lease().await;
    bench.claim_one(bench.lease().await?).await.map(drop)
}

pub(crate) async fn nothing_waits_in_an_empty_store<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let claimed = bench.claim(bench.lease().await?, 10).await?;
    ensure!(claimed.work.is_empty() && claimed.sagas.is_empty(), "an empty store gave {claimed:?}");
    ensure_eq!(claimed.next_due_in, None, "when the next row is due");
    ensure_eq!(bench.store.backlog().await?, (0, None), "the backlog");
    Ok(())
}

pub(crate) async fn work_of_unknown_definitions_is_left<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let known = bench.start("k-known").await?;
    let newer = DefinitionId { version: 2, ..definition() };
    let other = DefinitionId { name: "refunds".into(), version: 1 };
    for (key, unknown) in [("k-1", &newer), ("k-2", &newer), ("k-3", &other)] {
        let mut saga = bench.new_saga(&Tenant::default(), key).await?;
        saga.definition = unknown.clone();
        saga.commands[0].definition = unknown.clone();
        bench.start_new(saga).await?;
    }
    let lease = bench.lease().await?;
    ensure_eq!(bench.claim_one(lease).await?.saga, known.id, "the only saga of a known definition");
    let mut unknown = bench.store.unknown_work(&[definition()]).await?;
    unknown.sort();
    ensure_eq!(unknown, [(newer.clone(), 2), (other.clone(), 1)], "the work of unknown definitions");
    let request = ClaimRequest { lease, limit: 10, definitions: [other, newer].into(), takes_over: true };
    ensure_eq!(bench.store.claim(request).await?.work.len(), 3, "the rows for a claimer that knows them");
    Ok(())
}

pub(crate) async fn a_claim_obeys_its_limit<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    for number in 0..5 {
        bench.start(&format!("k-{number}")).await?;
    }
    let mut met = BTreeSet::new();
    for expected in [2, 2, 1, 0] {
        let work = bench.claim(bench.lease().await?, 2).await?.work;
        ensure_eq!(work.len(), expected, "how many of five rows were claimed, two at a time");
        met.extend(work.iter().map(|work| work.work.id));
    }
    ensure_eq!(met.len(), 5, "the rows that were met");
    Ok(())
}

pub(crate) async fn the_oldest_due_comes_first<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    // The later a row was inserted, the earlier it was due, so that no order of insertion passes for the right one.
    let begun = bench.start_idle("k-1").await?;
    let step = bench.harness.timing().lease;
    let mut commands = Vec::new();
    for number in 0..3_u32 {
        let mut command = begun.command(WorkId(bench.id().await?), &format!("step-{number}"));
        command.due_in = step * (3 - number);
        commands.push(command);
    }
    bench.apply(Changes { commands, ..Changes::default() }).await?;
    bench.pass(step * 4).await;
    for expected in ["step-2", "step-1", "step-0"] {
        let work = bench.claim(bench.lease().await?, 1).await?.work;
        ensure_eq!(work.len(), 1, "one row is claimed at a time");
        ensure_eq!(work[0].step.as_str(), expected, "the row that has been due longest");
    }
    Ok(())
}

pub(crate) async fn two_claims_share_nothing<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    for number in 0..4 {
        bench.start(&format!("k-{number}")).await?;
    }
    let first = bench.claim(bench.lease().await?, 3).await?.work;
    let second = bench.claim(bench.lease().await?, 3).await?.work;
    ensure_eq!((first.len(), second.len()), (3, 1), "four rows for two claims of three");
    let ids: BTreeSet<WorkId> = first.iter().chain(&second).map(|work| work.work.id).collect();
    ensure_eq!(ids.len(), 4, "different rows");
    Ok(())
}

pub(crate) async fn a_lease_outlives_the_handle_it_was_taken_with<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    bench.start("k-1").await?;
    let lease = bench.lease().await?;
    bench.claim_one(lease).await?;
    let beside = bench.beside().await?;
    let request =
        ClaimRequest { lease: bench.lease().await?, limit: 10, definitions: [definition()].into(), takes_over: true };
    let claimed = beside.claim(request).await?.work;
    ensure!(claimed.is_empty(), "another process took a leased row: {claimed:?}");
    Ok(())
}

pub(crate) async fn work_of_a_recorded_step_is_deleted<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let mut done = begun.done(1);
    done.finished.clear();
    bench.apply(done).await?;
    let claimed = bench.claim(bench.lease().await?, 10).await?.work;
    ensure!(claimed.is_empty(), "a step that has a record was claimed: {claimed:?}");
    ensure!(bench.whole(&begun).await?.work.is_empty(), "the row of a step that has a record is still there");
    Ok(())
}

pub(crate) async fn a_record_of_one_step_leaves_the_others<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let undo = begun.record(&format!("{STEP}:undo"), RecordedOutcome::Cancelled);
    bench.apply(Changes { records: vec![undo], ..Changes::default() }).await?;
    let work = bench.claim_one(bench.lease().await?).await?;
    ensure_eq!(work.step.as_str(), STEP, "the step whose compensation has a record");
    Ok(())
}

pub(crate) async fn the_backlog_counts_what_waits<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    bench.start("k-2").await?;
    bench.start_idle("k-3").await?;
    let pause = bench.harness.timing().lease;
    bench.pass(pause).await;
    let (rows, oldest) = bench.store.backlog().await?;
    ensure_eq!(rows, 2, "the rows that wait");
    ensure!(oldest >= Some(pause), "the oldest has been due for at least {pause:?}, not for {oldest:?}");
    bench.apply(Changes { finished: vec![(begun.work, Condition::Held)], ..Changes::default() }).await?;
    ensure_eq!(bench.store.backlog().await?.0, 1, "the rows that wait behind the end of one");
    Ok(())
}

pub(crate) async fn work_that_is_not_due_is_not_overdue<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start_idle("k-1").await?;
    let mut later = begun.command(WorkId(bench.id().await?), STEP);
    later.due_in = HOUR;
    bench.apply(Changes { commands: vec![later], ..Changes::default() }).await?;
    let (rows, oldest) = bench.store.backlog().await?;
    ensure_eq!((rows, oldest), (1, None::<Duration>), "one row waits, and none is due");
    Ok(())
}
