//! Writing what was decided: whole or not at all, and each change on its own.

use std::time::Duration;

use saga_core::store::{
    Changes, Condition, HistoryEntry, HistoryKind, Miss, NewWork, RecordedOutcome, Records, RevisedRecord, Sagas,
    Status, StepId, StoreErrorKind, Tried, Work, WorkId,
};

use crate::check::{Failed, Outcome, ensure, ensure_eq};
use crate::fixture::{Begun, Bench, OTHER, STEP, tenant};
use crate::harness::StoreHarness;

fn entry(begun: &Begun, detail: &str) -> HistoryEntry {
    let step = Some(StepId::doing(STEP));
    HistoryEntry { saga: begun.id, step, kind: HistoryKind::Operator, attempt: 2, detail: detail.into() }
}

/// Everything that a change can write, on a saga whose first command is held under `begun.work`.
async fn everything<H: StoreHarness>(bench: &Bench<H>, begun: &Begun, expected: u64) -> Result<Changes, Failed> {
    let next = begun.command(WorkId(bench.id().await?), OTHER);
    Ok(Changes {
        commands: vec![next],
        messages: vec![begun.message("o-1", 1)],
        history: vec![entry(begun, "went past it")],
        ..begun.done(expected)
    })
}

/// Fails when anything of [`everything`] was written.
async fn nothing_was_written<H: StoreHarness>(bench: &Bench<H>, begun: &Begun) -> Outcome {
    let whole = bench.whole(begun).await?;
    ensure_eq!((whole.saga.version, whole.saga.status), (1, Status::Running), "the saga behind a miss");
    ensure!(whole.history.is_empty(), "a miss left history behind: {:?}", whole.history);
    ensure_eq!(bench.outcome_of(begun, STEP).await?, None, "the record behind a miss");
    let steps: Vec<&str> = whole.work.iter().map(|work| work.step.as_str()).collect();
    ensure!(!steps.contains(&OTHER), "a miss left a command behind: {steps:?}");
    ensure_eq!(bench.outbox().await?, [], "the messages behind a miss");
    Ok(())
}

pub(crate) async fn everything_of_a_change_is_written<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let mut changes = everything(&bench, &begun, 1).await?;
    changes.records[0].error = Some(b"{}".to_vec());
    changes.records[0].input = Some(vec![0]);
    bench.apply(changes.clone()).await?;
    let bench = bench.reopen().await?;
    let whole = bench.whole(&begun).await?;
    let advance = begun.advance(1, Status::Running);
    ensure_eq!((whole.saga.version, &whole.saga.state), (2, &advance.state), "the saga");
    let record = &whole.records[0];
    let new = &changes.records[0];
    ensure_eq!((&record.step, record.outcome), (&new.step, new.outcome), "the record");
    ensure_eq!((&record.output, &record.error, &record.input), (&new.output, &new.error, &new.input), "its values");
    ensure_eq!((record.position, record.attempts, record.took), (new.position, new.attempts, new.took), "its numbers");
    let history: Vec<&HistoryEntry> = whole.history.iter().map(|(_, entry)| entry).collect();
    ensure_eq!(history, [&entry(&begun, "went past it")], "the history");
    let work: Vec<WorkId> = whole.work.iter().map(|work| work.work.id).collect();
    ensure_eq!(work, [changes.commands[0].id], "the work: the one is finished, the next is there");
    let sent = bench.outbox().await?;
    ensure_eq!(sent.len(), 1, "the messages");
    ensure_eq!(sent[0].id, changes.messages[0].id, "the message");
    Ok(())
}

pub(crate) async fn a_moved_saga_leaves_nothing<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let stale = everything(&bench, &begun, 7).await?;
    let applied = bench.store.record(vec![stale]).await?;
    let [Err(Miss::Saga(now))] = &applied[..] else {
        return Err(Failed(format!("expected the saga as it is, got {applied:?}")));
    };
    ensure_eq!(**now, bench.saga(&begun).await?, "the saga that the miss carries");
    nothing_was_written(&bench, &begun).await?;
    bench.claim_one(bench.lease().await?).await.map(drop)
}

pub(crate) async fn a_lost_row_leaves_nothing<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    bench.claim_one(bench.lease().await?).await?;
    let stale = everything(&bench, &begun, 1).await?;
    let applied = bench.store.record(vec![stale]).await?;
    ensure!(matches!(applied[..], [Err(Miss::Work(id))] if id == begun.work.id), "a lost row answered {applied:?}");
    nothing_was_written(&bench, &begun).await
}

pub(crate) async fn a_record_that_exists_leaves_nothing<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let first = begun.record(OTHER, RecordedOutcome::Cancelled);
    bench.apply(Changes { records: vec![first.clone()], ..Changes::default() }).await?;
    let mut changes = everything(&bench, &begun, 1).await?;
    changes.records.push(first);
    let applied = bench.store.record(vec![changes]).await?;
    let [Err(Miss::Record(step))] = &applied[..] else {
        return Err(Failed(format!("expected the record that exists to be named, got {applied:?}")));
    };
    ensure_eq!(step.as_str(), OTHER, "the step whose record exists");
    nothing_was_written(&bench, &begun).await
}

pub(crate) async fn a_miss_hinders_no_other_change<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let mut begun = Vec::new();
    for key in ["k-1", "k-2", "k-3", "k-4"] {
        begun.push(bench.start(key).await?);
    }
    let lost = begun[2].with_work(saga_core::store::WorkRef { epoch: 9, ..begun[2].work });
    let changes = vec![begun[0].done(1), begun[1].done(5), lost.done(1), begun[3].done(1)];
    let applied = bench.store.record(changes).await?;
    ensure!(
        matches!(&applied[..], [Ok(()), Err(Miss::Saga(saga)), Err(Miss::Work(_)), Ok(())] if saga.id == begun[1].id),
        "expected applied, moved, lost, applied; got {applied:?}"
    );
    for (index, expected) in [Some(RecordedOutcome::Done), None, None, Some(RecordedOutcome::Done)].iter().enumerate() {
        ensure_eq!(bench.outcome_of(&begun[index], STEP).await?, *expected, "the record of saga {index}");
    }
    Ok(())
}

pub(crate) async fn an_advance_counts_one<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start_idle("k-1").await?;
    for (expected, status) in [(1, Status::Running), (2, Status::Compensating), (3, Status::Stuck)] {
        bench.advance(&begun, expected, status).await?;
        let row = bench.saga(&begun).await?;
        ensure_eq!((row.version, row.status), (expected + 1, status), "the saga behind its advance");
        ensure_eq!(row.state, begun.advance(expected, status).state, "its state");
        ensure!(row.advanced_at >= row.started_at && row.ended_at.is_none(), "its times: {row:?}");
    }
    Ok(())
}

pub(crate) async fn the_end_is_written_down_and_cleared<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start_idle("k-1").await?;
    bench.advance(&begun, 1, Status::Completed).await?;
    let ended = bench.saga(&begun).await?;
    ensure!(ended.ended_at.is_some_and(|at| at >= ended.started_at), "an ended saga ended at {:?}", ended.ended_at);
    bench.advance(&begun, 2, Status::Compensating).await?;
    ensure_eq!(bench.saga(&begun).await?.ended_at, None, "the end of a saga that was reopened");
    bench.advance(&begun, 3, Status::Compensated).await?;
    ensure!(bench.saga(&begun).await?.ended_at.is_some(), "a compensated saga has no end");
    Ok(())
}

pub(crate) async fn changes_without_an_advance_move_no_saga<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let before = bench.saga(&begun).await?;
    let changes = Changes { saga: None, ..everything(&bench, &begun, 1).await? };
    bench.apply(changes).await?;
    ensure_eq!(bench.saga(&begun).await?, before, "a saga that was not advanced");
    ensure_eq!(bench.outcome_of(&begun, STEP).await?, Some(RecordedOutcome::Done), "the record");
    Ok(())
}

pub(crate) async fn the_lease_does_not_matter_to_a_decision<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    // The row was never leased: its epoch is the one it was inserted with.
    bench.apply(begun.done(1)).await?;
    ensure!(bench.whole(&begun).await?.work.is_empty(), "a finished row is still there");
    Ok(())
}

pub(crate) async fn postponing_needs_the_epoch<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let work = bench.claim_one(bench.lease().await?).await?.work;
    let stale = begun.postponed(Duration::ZERO);
    let applied = bench.store.record(vec![Changes { postponed: vec![stale], ..Changes::default() }]).await?;
    ensure!(matches!(applied[..], [Err(Miss::Work(_))]), "a row was postponed under an old epoch: {applied:?}");
    ensure_eq!(bench.store.renew(&[work], bench.lease().await?).await?, [true], "whether the owner still holds it");
    Ok(())
}

pub(crate) async fn finishing_twice_misses<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let finish = || Changes { finished: vec![(begun.work, Condition::Held)], ..Changes::default() };
    bench.apply(finish()).await?;
    let applied = bench.store.record(vec![finish()]).await?;
    ensure!(matches!(applied[..], [Err(Miss::Work(_))]), "a row was finished twice: {applied:?}");
    Ok(())
}

pub(crate) async fn a_record_is_inserted_once<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    bench.apply(Changes { records: vec![begun.record(STEP, RecordedOutcome::Done)], ..Changes::default() }).await?;
    for outcome in [RecordedOutcome::Done, RecordedOutcome::Rejected, RecordedOutcome::Cancelled] {
        let again = Changes { records: vec![begun.record(STEP, outcome)], ..Changes::default() };
        let applied = bench.store.record(vec![again]).await?;
        ensure!(matches!(applied[..], [Err(Miss::Record(_))]), "a second record was answered with {applied:?}");
    }
    ensure_eq!(bench.outcome_of(&begun, STEP).await?, Some(RecordedOutcome::Done), "the record");
    ensure_eq!(bench.store.records_of(&begun.tenant, &begun.key).await?.len(), 1, "the records");
    Ok(())
}

pub(crate) async fn every_outcome_is_kept<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start_idle("k-1").await?;
    let outcomes = [
        RecordedOutcome::Done,
        RecordedOutcome::Rejected,
        RecordedOutcome::Failed,
        RecordedOutcome::Unknown,
        RecordedOutcome::Cancelled,
        RecordedOutcome::Skipped,
    ];
    // The positions fall while the names rise, so that the order by position is seen.
    let records = outcomes.iter().zip(1_u32..).map(|(outcome, number)| {
        let mut record = begun.record(&format!("step-{number}"), *outcome);
        record.position = 100 - number;
        record.output = None;
        record
    });
    bench.apply(Changes { records: records.collect(), ..Changes::default() }).await?;
    let stored = bench.store.records_of(&begun.tenant, &begun.key).await?;
    let kept: Vec<RecordedOutcome> = stored.iter().rev().map(|record| record.outcome).collect();
    ensure_eq!(kept, outcomes, "the outcomes, by position");
    let with_steps = bench.whole(&begun).await?.records;
    ensure_eq!(with_steps, stored, "the records that come with the saga");
    Ok(())
}

pub(crate) async fn records_of_steps_leave_out_those_of_items<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start_idle("k-1").await?;
    let of = |step: StepId, position| {
        let mut record = begun.record("any", RecordedOutcome::Done);
        (record.step, record.position) = (step, position);
        record
    };
    let item = |number| StepId::of_item("pack", number);
    let steps = [StepId::doing("plan"), item(0), item(1), item(10), item(10).undone(1), item(1).undone(2)];
    let steps = steps.into_iter().chain([StepId::doing("pack")]);
    let records: Vec<_> = steps.zip(1..).map(|(step, position)| of(step, position)).collect();
    bench.apply(Changes { records: records.clone(), ..Changes::default() }).await?;
    let all = bench.store.records_of(&begun.tenant, &begun.key).await?;
    ensure_eq!(all.len(), records.len(), "how many records there are");
    let of_steps = bench.store.records_of_steps(&begun.tenant, &begun.key).await?;
    let names: Vec<&str> = of_steps.iter().map(|record| record.step.as_str()).collect();
    ensure_eq!(names, ["plan", "pack#0", "pack"], "the records of steps");
    ensure!(of_steps.iter().all(|record| all.contains(record)), "a record of a step differs: {of_steps:?}");
    Ok(())
}

pub(crate) async fn a_revision_needs_what_it_expects<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    bench.apply(begun.done(1)).await?;
    let revise = |step: &str, expected, outcome| Changes {
        revised: vec![RevisedRecord {
            tenant: begun.tenant.clone(),
            key: begun.key.clone(),
            step: StepId::doing(step),
            expected,
            outcome,
            output: Some(b"given".to_vec()),
        }],
        ..Changes::default()
    };
    let misses = [
        revise(STEP, RecordedOutcome::Unknown, RecordedOutcome::Skipped),
        revise(OTHER, RecordedOutcome::Done, RecordedOutcome::Skipped),
    ];
    let applied = bench.store.record(misses.to_vec()).await?;
    ensure!(
        matches!(applied[..], [Err(Miss::Record(_)), Err(Miss::Record(_))]),
        "a record that is not as expected was revised: {applied:?}"
    );
    bench.apply(revise(STEP, RecordedOutcome::Done, RecordedOutcome::Skipped)).await?;
    let step = StepId::doing(STEP);
    let record = bench.store.record_of(&begun.tenant, &begun.key, &step).await?;
    let record = record.ok_or_else(|| Failed("the revised record is gone".into()))?;
    let seen = (record.outcome, record.output.as_deref(), record.position);
    ensure_eq!(seen, (RecordedOutcome::Skipped, Some(&b"given"[..]), 1), "the revised record");
    Ok(())
}

pub(crate) async fn two_changes_of_one_saga_are_refused<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let one = bench.start("k-1").await?;
    let two = bench.start("k-2").await?;
    let again = Changes { saga: Some(one.advance(1, Status::Stuck)), ..Changes::default() };
    let refused = bench.store.record(vec![two.done(1), one.done(1), again]).await;
    let kind = refused.as_ref().err().map(saga_core::store::StoreError::kind);
    ensure_eq!(kind, Some(StoreErrorKind::Misuse), "how two changes of one saga are refused");
    for begun in [&one, &two] {
        ensure_eq!(bench.saga(begun).await?.version, 1, "the version behind a refusal");
        ensure_eq!(bench.outcome_of(begun, STEP).await?, None, "the record behind a refusal");
    }
    Ok(())
}

pub(crate) async fn history_comes_oldest_first<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start_idle("k-1").await?;
    let kinds = [
        HistoryKind::AttemptFailed,
        HistoryKind::Stuck,
        HistoryKind::Operator,
        HistoryKind::Late,
        HistoryKind::Migrated,
    ];
    let entries: Vec<HistoryEntry> =
        kinds.iter().map(|kind| HistoryEntry { kind: *kind, ..entry(&begun, kind.as_str()) }).collect();
    let (first, rest) = entries.split_at(2);
    bench.apply(Changes { history: first.to_vec(), ..Changes::default() }).await?;
    for entry in rest {
        bench.apply(Changes { history: vec![entry.clone()], ..Changes::default() }).await?;
    }
    let whole = bench.store.saga_with_steps(&begun.tenant, &begun.key).await?;
    let history = whole.map(|whole| whole.history).unwrap_or_default();
    let kept: Vec<HistoryEntry> = history.iter().map(|(_, entry)| entry.clone()).collect();
    ensure_eq!(kept, entries, "the history");
    ensure!(history.is_sorted_by_key(|(at, _)| *at), "the times of the history fall: {history:?}");
    Ok(())
}

pub(crate) async fn a_message_appears_with_its_commit<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let message = begun.message("o-1", 1);
    let with = |expected| Changes { messages: vec![message.clone()], ..begun.done(expected) };
    bench.store.record(vec![with(3)]).await?;
    ensure_eq!(bench.outbox().await?, [], "the messages of changes that missed");
    bench.apply(with(1)).await?;
    ensure_eq!(bench.outbox().await?.len(), 1, "the messages of changes that were applied");
    Ok(())
}

pub(crate) async fn changes_start_a_saga<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let mut saga = bench.new_saga(&tenant("acme"), "k-1").await?;
    let begun = Begun::of(&saga, saga.commands[0].id);
    saga.status = Status::Compensating;
    let started = Changes {
        start: Some(Box::new(saga.clone())),
        records: vec![begun.record(OTHER, RecordedOutcome::Done)],
        ..Changes::default()
    };
    bench.apply(started.clone()).await?;
    let row = bench.saga(&begun).await?;
    ensure_eq!((row.id, row.version, row.status), (begun.id, 1, Status::Compensating), "the saga");
    ensure_eq!(bench.outcome_of(&begun, OTHER).await?, Some(RecordedOutcome::Done), "its record");
    ensure_eq!(bench.claim_one(bench.lease().await?).await?.work.id, begun.work.id, "its command");
    let other = bench.new_saga(&tenant("acme"), "k-1").await?;
    let history = vec![HistoryEntry {
        saga: begun.id,
        step: None,
        kind: HistoryKind::Operator,
        attempt: 0,
        detail: "of changes that missed".into(),
    }];
    let second = Changes { start: Some(Box::new(other)), history, ..Changes::default() };
    let missed = bench.store.record(vec![second]).await?;
    ensure!(
        matches!(&missed[..], [Err(Miss::Saga(known))] if **known == row),
        "a second start of one key answered {missed:?}"
    );
    ensure!(bench.whole(&begun).await?.history.is_empty(), "changes that missed left a history");
    let mut ended = bench.new_saga(&tenant("acme"), "k-2").await?;
    (ended.status, ended.commands) = (Status::Compensated, Vec::new());
    let bar = Begun::of(&ended, begun.work.id);
    bench.apply(Changes { start: Some(Box::new(ended)), ..Changes::default() }).await?;
    let row = bench.saga(&bar).await?;
    ensure_eq!(
        (row.status, row.ended_at),
        (Status::Compensated, Some(row.started_at)),
        "a saga that only bars its key"
    );
    Ok(())
}

pub(crate) async fn a_withdrawn_row_is_gone_whatever_its_epoch<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let claimed = bench.claim_one(bench.lease().await?).await?;
    let withdrawn = Changes { withdrawn: vec![begun.work.id], ..Changes::default() };
    bench.apply(withdrawn.clone()).await?;
    ensure!(bench.whole(&begun).await?.work.is_empty(), "the row is still there");
    bench.apply(withdrawn).await?;
    let missed = bench.store.record(vec![begun.with_work(claimed.work).done(1)]).await?;
    ensure!(matches!(missed[..], [Err(Miss::Work(_))]), "its owner's decision was answered {missed:?}");
    Ok(())
}

pub(crate) async fn a_command_that_was_tried_remembers_it<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let tried = Some(Tried { attempts: 1, error: "no answer".into() });
    let mut commands = Vec::new();
    for due_in in [Duration::from_hours(1), Duration::ZERO] {
        let id = WorkId(bench.id().await?);
        commands.push(NewWork { due_in, tried: tried.clone(), ..begun.command(id, OTHER) });
    }
    let due = commands[1].id;
    bench.apply(Changes { commands, ..begun.done(1) }).await?;
    for row in bench.whole(&begun).await?.work {
        ensure_eq!((row.attempts, row.error.as_deref()), (1, Some("no answer")), "what a row remembers");
        ensure!(row.retrying_since.is_some(), "a row whose attempt failed is not shown as retrying");
    }
    let claimed = bench.claim_one(bench.lease().await?).await?;
    ensure_eq!(claimed.work.id, due, "the row that was due");
    ensure_eq!((claimed.attempts, claimed.in_doubt, claimed.recovered), (1, false, false), "what the next owner gets");
    ensure!(claimed.retrying_for.is_some(), "it is not known to be retried");
    Ok(())
}
