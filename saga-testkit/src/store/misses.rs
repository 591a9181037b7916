//! When several things miss at once, which of them is told.

use saga_core::store::{Applied, Changes, Condition, Miss, RecordedOutcome, Records, Work, WorkRef};

use crate::check::{Failed, Outcome, ensure};
use crate::fixture::{Begun, Bench, OTHER, STEP};
use crate::harness::StoreHarness;

/// A saga with a late success on its row, a record of the other step and version 1.
async fn prepared<H: StoreHarness>(bench: &Bench<H>) -> Result<Begun, Failed> {
    let begun = bench.start("k-1").await?;
    bench.store.note_late(begun.work.id, b"paid").await?;
    let record = begun.record(OTHER, RecordedOutcome::Done);
    bench.apply(Changes { records: vec![record], ..Changes::default() }).await?;
    Ok(begun)
}

/// Changes that miss in the saga, and in whatever else is asked for.
fn changes(begun: &Begun, lost: bool, late: bool, taken: bool) -> Changes {
    let epoch = if lost { 9 } else { begun.work.epoch };
    let condition = if late { Condition::NotLate } else { Condition::Held };
    let step = if taken { OTHER } else { STEP };
    Changes {
        finished: vec![(WorkRef { epoch, ..begun.work }, condition)],
        records: vec![begun.record(step, RecordedOutcome::Done)],
        ..begun.done(6)
    }
}

async fn answer<H: StoreHarness>(bench: &Bench<H>, changes: Changes) -> Result<Applied, Failed> {
    let mut applied = bench.store.record(vec![changes]).await?;
    applied.pop().ok_or_else(|| Failed("one change was recorded, and nothing was answered".into()))
}

pub(crate) async fn a_lost_row_comes_before_all_else<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = prepared(&bench).await?;
    for (late, taken) in [(false, false), (true, false), (false, true), (true, true)] {
        let answer = answer(&bench, changes(&begun, true, late, taken)).await?;
        ensure!(matches!(answer, Err(Miss::Work(_))), "expected the lost row to be told first, got {answer:?}");
    }
    Ok(())
}

pub(crate) async fn a_late_success_comes_before_record_and_saga<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = prepared(&bench).await?;
    for taken in [false, true] {
        let answer = answer(&bench, changes(&begun, false, true, taken)).await?;
        ensure!(matches!(answer, Err(Miss::Late { .. })), "expected the late success to be told first, got {answer:?}");
    }
    Ok(())
}

pub(crate) async fn a_record_comes_before_the_saga<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = prepared(&bench).await?;
    let taken = answer(&bench, changes(&begun, false, false, true)).await?;
    ensure!(matches!(taken, Err(Miss::Record(_))), "expected the record to be told first, got {taken:?}");
    let moved = answer(&bench, changes(&begun, false, false, false)).await?;
    ensure!(matches!(moved, Err(Miss::Saga(_))), "expected the saga to be told, got {moved:?}");
    Ok(())
}
