//! The step transaction.

use std::sync::Arc;

use saga_core::store::{
    Changes, Claim, ClaimRequest, Condition, HandlerVerdict, Lease, NewRecord, RecordedOutcome, RetryClass, SagaRow,
    Status, StepId, Store, StoreErrorKind, TransactError, Work, WorkId, WorkKind, WorkRef,
};

use crate::check::{Failed, Outcome, ensure, ensure_eq};
use crate::fixture::{Act, Begun, Bench, Meeting, OTHER, Play, STEP, Seen, definition};
use crate::harness::StoreHarness;

/// Three sagas whose commands are claimed.
pub(in crate::store) async fn three<H: StoreHarness>(bench: &Bench<H>) -> Result<Vec<Begun>, Failed> {
    let mut begun = Vec::new();
    for key in ["k-1", "k-2", "k-3"] {
        begun.push(bench.start(key).await?);
    }
    for claimed in bench.claim(bench.lease().await?, 10).await?.work {
        if let Some(begun) = begun.iter_mut().find(|begun| begun.id == claimed.saga) {
            begun.work = claimed.work;
        }
    }
    Ok(begun)
}

pub(in crate::store) fn claims(begun: &[Begun]) -> Vec<Claim> {
    begun.iter().map(Begun::claim).collect()
}

pub(in crate::store) fn done(begun: &[Begun]) -> Vec<Changes> {
    begun.iter().map(|begun| begun.done(1)).collect()
}

/// Runs a script that must end well.
pub(in crate::store) async fn transact<H: StoreHarness>(
    bench: &Bench<H>,
    claims: Vec<Claim>,
    plays: Vec<Play>,
    changes: Vec<Changes>,
) -> Result<Seen, Failed> {
    let script = bench.script(plays, changes);
    let seen = script.seen();
    bench.store.transact(claims, Box::new(script)).await?;
    Ok(seen())
}

/// Runs a script that must not commit, and fails when anything of it was kept.
async fn rolled_back<H: StoreHarness>(
    bench: &Bench<H>,
    begun: &[Begun],
    plays: Vec<Play>,
    changes: Vec<Changes>,
) -> Result<TransactError, Failed> {
    let Err(error) = bench.store.transact(claims(begun), Box::new(bench.script(plays, changes))).await else {
        return Err(Failed("a transaction committed that must not".into()));
    };
    for row in ["a", "b", "c"] {
        ensure_eq!(bench.business(row).await, None, "what a handler wrote to {row} in a transaction that failed");
    }
    ensure_eq!(bench.outbox().await?, [], "the messages of a transaction that failed");
    Ok(error)
}

pub(in crate::store) fn plays() -> Vec<Play> {
    vec![Play::keep("a", 1), Play::keep("b", 2), Play::keep("c", 3)]
}

pub(crate) async fn a_batch_commits_together<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = three(&bench).await?;
    let mut changes = done(&begun);
    changes[1].messages.push(begun[1].message("o-1", 1));
    let seen = transact(&bench, claims(&begun), plays(), changes).await?;
    ensure_eq!((seen.granted, seen.ran), (vec![true; 3], vec![0, 1, 2]), "the claims and the handlers, in order");
    ensure_eq!(seen.decided, 1, "how often `changes` was called");
    let bench = bench.reopen().await?;
    for (row, value) in [("a", 1), ("b", 2), ("c", 3)] {
        ensure_eq!(bench.business(row).await, Some(value), "what a handler wrote to {row}");
    }
    for begun in &begun {
        ensure_eq!(bench.outcome_of(begun, STEP).await?, Some(RecordedOutcome::Done), "the record of {}", begun.key);
        ensure_eq!(bench.saga(begun).await?.version, 2, "the version of {}", begun.key);
        ensure!(bench.whole(begun).await?.work.is_empty(), "the row of {} is still there", begun.key);
    }
    ensure_eq!(bench.outbox().await?.len(), 1, "the messages");
    Ok(())
}

/// Runs the second of three claims as `change` made it, which must not be granted, between two that must.
async fn only_the_second_is_refused<H: StoreHarness>(
    bench: &Bench<H>,
    begun: &[Begun],
    change: impl FnOnce(&mut Claim),
) -> Outcome {
    let mut claims = claims(begun);
    change(&mut claims[1]);
    let changes = vec![begun[0].done(1), begun[2].done(1)];
    let seen = transact(bench, claims, plays(), changes).await?;
    ensure_eq!(seen.granted, [true, false, true], "which of the claims were granted");
    ensure_eq!(seen.ran, [0, 2], "the handlers that ran");
    ensure_eq!(bench.business("b").await, None, "what the handler without a claim wrote");
    ensure_eq!(bench.business("c").await, Some(3), "what the handler behind it wrote");
    Ok(())
}

pub(crate) async fn an_old_epoch_is_not_granted<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = three(&bench).await?;
    only_the_second_is_refused(&bench, &begun, |claim| claim.work.epoch -= 1).await
}

pub(crate) async fn a_row_that_is_gone_is_not_granted<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = three(&bench).await?;
    let finished = vec![(begun[1].work, Condition::Held)];
    bench.apply(Changes { finished, ..Changes::default() }).await?;
    only_the_second_is_refused(&bench, &begun, |_| ()).await
}

pub(crate) async fn a_step_with_a_record_is_not_granted<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = three(&bench).await?;
    let records = vec![begun[1].record(STEP, RecordedOutcome::Cancelled)];
    bench.apply(Changes { records, ..Changes::default() }).await?;
    only_the_second_is_refused(&bench, &begun, |_| ()).await
}

pub(crate) async fn doing_is_not_granted_while_the_saga_compensates<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = three(&bench).await?;
    bench.advance(&begun[1], 1, Status::Compensating).await?;
    only_the_second_is_refused(&bench, &begun, |_| ()).await
}

pub(crate) async fn doing_is_not_granted_while_the_saga_is_stuck<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = three(&bench).await?;
    bench.advance(&begun[1], 1, Status::Stuck).await?;
    only_the_second_is_refused(&bench, &begun, |_| ()).await
}

pub(crate) async fn nothing_is_granted_while_the_saga_is_paused<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = three(&bench).await?;
    bench.advance(&begun[1], 1, Status::Paused).await?;
    only_the_second_is_refused(&bench, &begun, |_| ()).await
}

pub(crate) async fn undoing_is_not_granted_while_the_saga_runs<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = three(&bench).await?;
    only_the_second_is_refused(&bench, &begun, |claim| {
        claim.kind = WorkKind::Undo;
        claim.step = StepId::undoing(STEP, 1);
    })
    .await
}

pub(crate) async fn undoing_is_granted_while_the_saga_compensates<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start_idle("k-1").await?;
    let id = WorkId(bench.id().await?);
    let step = StepId::undoing(STEP, 1);
    let mut undo = begun.command(id, STEP);
    undo.kind = WorkKind::Undo;
    undo.step = step.clone();
    bench.apply(Changes { commands: vec![undo], ..Changes::default() }).await?;
    bench.advance(&begun, 1, Status::Compensating).await?;
    let claim = Claim { kind: WorkKind::Undo, step, ..begun.claim_as(WorkRef { id, epoch: 1 }, STEP) };
    let undone = Changes {
        saga: Some(begun.advance(2, Status::Compensated)),
        finished: vec![(claim.work, Condition::Held)],
        records: vec![begun.record(claim.step.as_str(), RecordedOutcome::Done)],
        ..Changes::default()
    };
    let seen = transact(&bench, vec![claim], vec![Play::keep("a", 1)], vec![undone]).await?;
    ensure_eq!(seen.granted, [true], "whether undoing was granted");
    ensure_eq!(bench.saga(&begun).await?.status, Status::Compensated, "the saga");
    Ok(())
}

pub(crate) async fn without_a_claim_nothing_is_written<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    bench.claim_one(bench.lease().await?).await?;
    let changes = Changes {
        saga: Some(begun.advance(1, Status::Stuck)),
        records: vec![begun.record(OTHER, RecordedOutcome::Done)],
        messages: vec![begun.message("o-1", 1)],
        ..Changes::default()
    };
    let seen = transact(&bench, vec![begun.claim()], plays(), vec![changes]).await?;
    ensure_eq!((seen.granted, seen.ran), (vec![false], vec![]), "a claim under an old epoch");
    ensure_eq!(bench.business("a").await, None, "what was written");
    ensure_eq!(bench.saga(&begun).await?.version, 1, "the version");
    ensure_eq!(bench.outcome_of(&begun, OTHER).await?, None, "the record");
    ensure_eq!(bench.outbox().await?, [], "the messages");
    Ok(())
}

pub(crate) async fn granted_rows_have_one_owner<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let work = bench.claim_one(bench.short_lease().await?).await?.work;
    let begun = begun.with_work(work);
    let meeting = Arc::new(Meeting::default());
    let play = Play::keep("a", 1).and(Act::OutlastLease).and(Act::Meet(Arc::clone(&meeting)));
    let script = bench.script(vec![play], vec![begun.done(1)]);
    let other = bench.lease().await?;
    let taker = tokio::spawn({
        let (store, meeting) = (Arc::clone(&bench.store), Arc::clone(&meeting));
        async move {
            meeting.entered.notified().await;
            // The lease has ended, and the row is held all the same.
            let request =
                ClaimRequest { lease: other, limit: 10, definitions: [definition()].into(), takes_over: true };
            let claimed = store.claim(request).await;
            meeting.go_on.notify_one();
            claimed
        }
    });
    let committed = bench.store.transact(vec![begun.claim()], Box::new(script)).await;
    let stolen = taker.await.map_err(|error| Failed(format!("the claim panicked: {error}")))??.work;
    committed?;
    ensure!(stolen.is_empty(), "a row was taken while its step ran: {stolen:?}");
    ensure_eq!(bench.business("a").await, Some(1), "what the step wrote");
    Ok(())
}

pub(crate) async fn a_handler_that_errs_is_undone_alone<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = three(&bench).await?;
    let plays = vec![Play::keep("a", 1), Play::then("b", 2, HandlerVerdict::RollBack), Play::keep("c", 3)];
    let mut changes = done(&begun);
    changes[1].records[0].outcome = RecordedOutcome::Rejected;
    transact(&bench, claims(&begun), plays, changes).await?;
    for (row, expected) in [("a", Some(1)), ("b", None), ("c", Some(3))] {
        ensure_eq!(bench.business(row).await, expected, "what a handler wrote to {row}");
    }
    // The rejection is recorded by the commit that undid its writes.
    ensure_eq!(bench.outcome_of(&begun[1], STEP).await?, Some(RecordedOutcome::Rejected), "the rejection");
    Ok(())
}

pub(crate) async fn an_undone_write_shows_what_was_there<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = three(&bench).await?;
    let plays = vec![
        Play::keep("a", 1),
        Play::then("a", 2, HandlerVerdict::RollBack).and(Act::Write("a".into(), 3)),
        Play::keep("b", 4),
    ];
    transact(&bench, claims(&begun), plays, done(&begun)).await?;
    ensure_eq!(bench.business("a").await, Some(1), "the value that the handler before had written");
    ensure_eq!(bench.business("b").await, Some(4), "what the handler behind wrote");
    Ok(())
}

pub(crate) async fn a_moved_saga_is_decided_again<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = three(&bench).await?;
    bench.advance(&begun[1], 1, Status::Running).await?;
    let again = begun.clone();
    let script = bench.script(plays(), done(&begun)).again(move |moved: Vec<SagaRow>| {
        let version = |begun: &Begun| moved.iter().find(|row| row.id == begun.id).map_or(1, |row| row.version);
        again.iter().map(|begun| begun.done(version(begun))).collect()
    });
    let seen = script.seen();
    bench.store.transact(claims(&begun), Box::new(script)).await?;
    let seen = seen();
    ensure_eq!(seen.moved, [(begun[1].id.0, 2)], "the sagas that had moved, with the version they have");
    ensure_eq!(seen.ran, [0, 1, 2], "the handlers that ran, each once");
    let mut versions = Vec::new();
    for begun in &begun {
        versions.push(bench.saga(begun).await?.version);
    }
    ensure_eq!(versions, [2, 3, 2], "the versions");
    ensure_eq!(bench.business("b").await, Some(2), "what the handler wrote");
    Ok(())
}

pub(crate) async fn a_moved_saga_brings_its_records<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = three(&bench).await?;
    // The first was recorded before the claim, and the second after it, as other branches of a group do.
    let (early, late) =
        (begun[1].record(OTHER, RecordedOutcome::Done), begun[1].record("third", RecordedOutcome::Done));
    bench.apply(Changes { records: vec![early], ..Changes::default() }).await?;
    let advance = Some(begun[1].advance(1, Status::Running));
    let late = NewRecord { output: Some(b"late".to_vec()), input: Some(b"given".to_vec()), position: 2, ..late };
    bench.apply(Changes { saga: advance, records: vec![late], ..Changes::default() }).await?;
    let again = begun.clone();
    let script = bench.script(plays(), done(&begun)).again(move |moved: Vec<SagaRow>| {
        let version = |begun: &Begun| moved.iter().find(|row| row.id == begun.id).map_or(1, |row| row.version);
        again.iter().map(|begun| begun.done(version(begun))).collect()
    });
    let seen = script.seen();
    bench.store.transact(claims(&begun), Box::new(script)).await?;
    let mut told: Vec<_> =
        seen().recorded.into_iter().map(|record| (record.step, record.output, record.input)).collect();
    told.sort_by_key(|(step, ..)| step.to_string());
    let expected = [
        (StepId::doing(OTHER), Some(b"output".to_vec()), None),
        (StepId::doing("third"), Some(b"late".to_vec()), Some(b"given".to_vec())),
    ];
    ensure_eq!(told, expected, "what is recorded of the saga that had moved");
    Ok(())
}

pub(crate) async fn a_record_that_exists_rolls_all_back<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = three(&bench).await?;
    let taken = begun[1].record(OTHER, RecordedOutcome::Done);
    bench.apply(Changes { records: vec![taken.clone()], ..Changes::default() }).await?;
    let mut changes = done(&begun);
    changes[1].records.push(taken);
    changes[0].messages.push(begun[0].message("o-1", 1));
    let error = rolled_back(&bench, &begun, plays(), changes).await?;
    ensure_eq!(error.error.class(), RetryClass::Transient, "the class of {error}");
    for begun in &begun {
        ensure_eq!(bench.outcome_of(begun, STEP).await?, None, "the record of {}", begun.key);
        ensure_eq!(bench.saga(begun).await?.version, 1, "the version of {}", begun.key);
    }
    Ok(())
}

pub(crate) async fn a_row_that_is_gone_rolls_all_back<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = three(&bench).await?;
    let mut changes = done(&begun);
    changes[2].finished = vec![(WorkRef { epoch: 9, ..begun[2].work }, Condition::Held)];
    changes[0].messages.push(begun[0].message("o-1", 1));
    rolled_back(&bench, &begun, plays(), changes).await?;
    // The claims are free to be run again.
    transact(&bench, claims(&begun), plays(), done(&begun)).await.map(drop)
}

pub(crate) async fn a_handler_that_ended_the_transaction_is_named<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = three(&bench).await?;
    let plays = vec![Play::keep("a", 1), Play::keep("b", 2).and(Act::EndTransaction), Play::keep("c", 3)];
    let error = rolled_back(&bench, &begun, plays, done(&begun)).await?;
    ensure!(error.ended_transaction, "a handler ended the transaction, and the error is {error:?}");
    ensure_eq!(error.culprit, Some(1), "the handler that ended it");
    for begun in &begun {
        ensure_eq!(bench.outcome_of(begun, STEP).await?, None, "the record of {}", begun.key);
    }
    Ok(())
}

pub(crate) async fn an_abandoned_handler_rolls_all_back<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = three(&bench).await?;
    let abandoned = vec![Play::keep("a", 1), Play::then("b", 2, HandlerVerdict::Abandon), Play::keep("c", 3)];
    let error = rolled_back(&bench, &begun, abandoned, done(&begun)).await?;
    ensure_eq!((error.culprit, error.ended_transaction), (Some(1), false), "who is to blame, and for what");
    ensure!(error.error.class() != RetryClass::Unknown, "an abandoned transaction certainly did not commit: {error:?}");
    transact(&bench, claims(&begun), plays(), done(&begun)).await?;
    ensure_eq!(bench.business("b").await, Some(2), "what the handler wrote when it ran again");
    Ok(())
}

pub(crate) async fn a_handler_with_a_conflict_rolls_all_back<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = three(&bench).await?;
    let giving_way = vec![Play::keep("a", 1), Play::then("b", 2, HandlerVerdict::Conflict), Play::keep("c", 3)];
    let error = rolled_back(&bench, &begun, giving_way, done(&begun)).await?;
    ensure_eq!((error.culprit, error.error.kind()), (None, StoreErrorKind::Conflict), "who is to blame, and the kind");
    transact(&bench, claims(&begun), plays(), done(&begun)).await?;
    ensure_eq!(bench.business("b").await, Some(2), "what the handler wrote when it ran again");
    Ok(())
}

pub(crate) async fn a_dropped_call_happened_whole_or_not_at_all<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let meeting = Arc::new(Meeting::default());
    let play = Play::keep("a", 1).and(Act::Meet(Arc::clone(&meeting)));
    let mut changes = begun.done(1);
    changes.messages.push(begun.message("o-1", 1));
    let script = bench.script(vec![play], vec![changes]);
    tokio::select! {
        biased;
        () = meeting.entered.notified() => {}
        ended = bench.store.transact(vec![begun.claim()], Box::new(script)) => ended?,
    }
    // The call is dropped in the middle of its handler.
    meeting.go_on.notify_one();
    // Whatever became of it, giving the row back waits for it.
    let is_free = bench.store.release_work(&[begun.work]).await? == [true];
    let written = bench.business("a").await.is_some();
    let recorded = bench.outcome_of(&begun, STEP).await?.is_some();
    let sent = bench.outbox().await?.len() == 1;
    let all = [written, recorded, sent, !is_free];
    ensure!(all == [true; 4] || all == [false; 4], "written, recorded, sent, finished: {all:?}");
    Ok(())
}

pub(crate) async fn a_short_lease_does_not_end_a_step<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let short: Lease = bench.short_lease().await?;
    let begun = begun.with_work(bench.claim_one(short).await?.work);
    bench.outlast_lease().await;
    // No other process took the row, so its epoch still stands.
    let seen = transact(&bench, vec![begun.claim()], vec![Play::keep("a", 1)], vec![begun.done(1)]).await?;
    ensure_eq!(seen.granted, [true], "whether a row whose lease ended, without a new owner, was granted");
    Ok(())
}
