//! Handlers that run for several claims at once.

use saga_core::store::{HandlerVerdict, RecordedOutcome, Store};

use super::transaction::{claims, done, plays, three, transact};
use crate::check::{Outcome, ensure_eq};
use crate::fixture::{Bench, Play, STEP};
use crate::harness::StoreHarness;

pub(crate) async fn a_claim_whose_handler_has_run_is_passed_over<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = three(&bench).await?;
    let script = bench.script(plays(), done(&begun)).has_run(1);
    let seen = script.seen();
    bench.store.transact(claims(&begun), Box::new(script)).await?;
    ensure_eq!(seen().ran, [0, 2], "the claims whose handlers ran");
    for (row, expected) in [("a", Some(1)), ("b", None), ("c", Some(3))] {
        ensure_eq!(bench.business(row).await, expected, "what the handlers wrote to {row}");
    }
    // What became of it is recorded as that of the others is.
    for begun in &begun {
        ensure_eq!(bench.outcome_of(begun, STEP).await?, Some(RecordedOutcome::Done), "the record");
        ensure_eq!(bench.saga(begun).await?.version, 2, "the version");
    }
    Ok(())
}

pub(crate) async fn a_claim_that_goes_back_runs_again_without_its_writes<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = three(&bench).await?;
    let plays = vec![
        Play::keep("a", 1),
        Play::keep("b", 2).go_back(Play::keep("d", 4).go_back(Play::keep("e", 5).go_on(Play::keep("f", 6)))),
        Play::keep("c", 3).go_back(Play::then("g", 7, HandlerVerdict::RollBack)),
    ];
    let seen = transact(&bench, claims(&begun), plays, done(&begun)).await?;
    ensure_eq!(seen.ran, [0, 1, 1, 1, 1, 2, 2], "the claims whose handlers ran, in order");
    let kept = [("a", Some(1)), ("b", None), ("c", None), ("d", None), ("e", Some(5)), ("f", Some(6)), ("g", None)];
    for (row, expected) in kept {
        ensure_eq!(bench.business(row).await, expected, "what the handlers wrote to {row}");
    }
    // The same of one claim alone.
    let begun = bench.start("k-alone").await?;
    let play = Play::keep("h", 1).go_back(Play::keep("i", 2));
    transact(&bench, vec![begun.claim()], vec![play], vec![begun.done(1)]).await?;
    ensure_eq!((bench.business("h").await, bench.business("i").await), (None, Some(2)), "what the handlers wrote");
    Ok(())
}

pub(crate) async fn a_rollback_goes_back_to_the_last_savepoint<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = three(&bench).await?;
    let plays = vec![Play::keep("a", 1), Play::keep("b", 2), Play::then("c", 3, HandlerVerdict::RollBack)];
    let script = bench.script(plays, done(&begun)).spares(&[0, 2]);
    let seen = script.seen();
    bench.store.transact(claims(&begun), Box::new(script)).await?;
    let asks = !seen().asked.is_empty();
    if asks {
        ensure_eq!((seen().asked, seen().ran), (vec![0, 1, 2], vec![0, 1, 2]), "what was asked, and ran");
    }
    // Who does not ask sets one for each.
    for (row, expected) in [("a", Some(1)), ("b", (!asks).then_some(2)), ("c", None)] {
        ensure_eq!(bench.business(row).await, expected, "what the handlers wrote to {row}");
    }
    Ok(())
}
