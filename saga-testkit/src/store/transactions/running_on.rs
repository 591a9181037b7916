//! Claims whose sagas run on in the same transaction.

use saga_core::store::{HandlerVerdict, RecordedOutcome, SagaRow, Status, Store, StoreErrorKind};

use super::transaction::{claims, done, plays, three, transact};
use crate::check::{Failed, Outcome, ensure, ensure_eq};
use crate::fixture::{Act, Begun, Bench, Play, STEP};
use crate::harness::StoreHarness;

pub(crate) async fn a_claim_that_continues_runs_again<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = three(&bench).await?;
    let plays = vec![
        Play::keep("a", 1),
        Play::then("b", 2, HandlerVerdict::Keep).go_on(Play::keep("d", 4)),
        Play::keep("c", 3).go_on(Play::keep("e", 5).go_on(Play::then("e", 6, HandlerVerdict::RollBack))),
    ];
    let seen = transact(&bench, claims(&begun), plays, done(&begun)).await?;
    ensure_eq!(seen.ran, [0, 1, 1, 2, 2, 2], "the claims whose handlers ran, in order");
    for (row, expected) in [("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", 5)] {
        ensure_eq!(bench.business(row).await, Some(expected), "what the handlers wrote to {row}");
    }
    Ok(())
}

pub(crate) async fn one_claim_alone_goes_on<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let erring = Play::then("b", 2, HandlerVerdict::RollBack).and(Act::Write("a".into(), 3));
    transact(&bench, vec![begun.claim()], vec![Play::keep("a", 1).go_on(erring)], vec![begun.done(1)]).await?;
    ensure_eq!(bench.business("a").await, Some(1), "what the first handler wrote");
    ensure_eq!(bench.business("b").await, None, "what the second handler wrote, and was rolled back");
    // What fails behind it takes all of it back.
    let begun = bench.start("k-2").await?;
    let taken = begun.record(STEP, RecordedOutcome::Done);
    let mut changes = begun.done(1);
    changes.records.extend([taken.clone(), taken]);
    let script = bench.script(vec![Play::keep("c", 1).go_on(Play::keep("d", 2))], vec![changes]);
    ensure!(bench.store.transact(vec![begun.claim()], Box::new(script)).await.is_err(), "a record was written twice");
    ensure_eq!((bench.business("c").await, bench.business("d").await), (None, None), "what the handlers wrote");
    Ok(())
}

pub(crate) async fn what_cannot_be_decided_again_is_rolled_back<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = three(&bench).await?;
    bench.advance(&begun[1], 1, Status::Running).await?;
    let script = bench.script(plays(), done(&begun)).gives_up();
    let Err(error) = bench.store.transact(claims(&begun), Box::new(script)).await else {
        return Err(Failed("a transaction committed whose body could not decide".into()));
    };
    ensure_eq!(error.error.kind(), StoreErrorKind::Conflict, "the kind of {error}");
    for row in ["a", "b", "c"] {
        ensure_eq!(bench.business(row).await, None, "what a handler wrote to {row}");
    }
    // The claims are free to be run again.
    let again = begun.clone();
    let script = bench.script(plays(), done(&begun)).again(move |moved: Vec<SagaRow>| {
        let version = |begun: &Begun| moved.iter().find(|row| row.id == begun.id).map_or(1, |row| row.version);
        again.iter().map(|begun| begun.done(version(begun))).collect()
    });
    bench.store.transact(claims(&begun), Box::new(script)).await?;
    ensure_eq!(bench.business("b").await, Some(2), "what the handler wrote when it ran again");
    Ok(())
}
