//! Damages of G5: the way back.

#![expect(clippy::unnecessary_wraps, reason = "every damage has one signature, for the table")]

use saga_testkit::checker::{Kind, Ledger, Left, Op, Recorded, Standing, What};
use saga_testkit::sim::Random;

use super::tools::{calls, do_after_undo, effect, insert, is_compensated, of, place, plan, remove_undo};

pub(super) fn undo_missing(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let (saga, step) = undone_step(ledger, random)?;
    remove_undo(ledger, saga, step);
    Some(())
}

/// A client was told at the place that the saga has turned round.
fn cancel(ledger: &mut Ledger, at: usize, saga: usize) {
    insert(ledger, at, What::CancelAnswered { call: 1_000_000, is_turned: true });
    insert(ledger, at, What::CancelCalled { call: 1_000_000, saga: saga as u32 });
}

pub(super) fn completed_though_cancelled(ledger: &mut Ledger, _: &mut Random) -> Option<()> {
    let saga = ledger.finals.iter().position(|end| end.standing == Standing::Completed)?;
    let at = ledger.entries.len();
    cancel(ledger, at, saga);
    Some(())
}

pub(super) fn begun_after_the_cancel(ledger: &mut Ledger, _: &mut Random) -> Option<()> {
    let has_two = |saga: &usize| (0..2).all(|step| effect(ledger, *saga, step, Op::Do).is_some());
    let saga = (0..ledger.finals.len()).filter(|saga| is_compensated(ledger, *saga)).find(has_two)?;
    cancel(ledger, 0, saga);
    Some(())
}

/// A step whose undo took effect.
fn undone_step(ledger: &Ledger, random: &mut Random) -> Option<(usize, u8)> {
    let at = place(ledger, random, |ledger, what| match what {
        What::Took { call } | What::Wrote { call } => of(ledger, *call).is_some_and(|step| step.2 == Op::Undo),
        _ => false,
    })?;
    let (What::Took { call } | What::Wrote { call }) = ledger.entries[at].what else { return None };
    of(ledger, call).map(|(saga, step, _)| (saga, step))
}

/// A saga that was compensated at a step which never took effect, and that step.
fn failed_step(ledger: &Ledger, random: &mut Random) -> Option<(usize, u8)> {
    let failed = ledger.finals.iter().enumerate().filter_map(|(saga, end)| {
        let rejected = end.records.iter().find(|record| record.outcome == Recorded::NotDone)?;
        Some((saga, rejected.step))
    });
    let failed: Vec<_> = failed.collect();
    (!failed.is_empty()).then(|| *random.pick(&failed))
}

pub(super) fn undo_invented(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let (saga, step) = failed_step(ledger, random)?;
    let last = calls(ledger, saga, step, Op::Do).pop()?;
    let at = ledger.entries.iter().position(|entry| matches!(entry.what, What::Left { call, .. } if call == last))?;
    if calls(ledger, saga, step, Op::Do).len() > 1 && plan(ledger, saga, step).kind == Kind::External {
        return None;
    }
    let invented = What::Entered {
        call: 1_000_000,
        saga: saga as u32,
        variant: 0,
        step,
        op: Op::Undo,
        fence: 1,
        reads: None,
        transaction: None,
    };
    insert(ledger, at + 1, invented);
    Some(())
}

pub(super) fn undo_of_a_completed_saga(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |ledger, what| match what {
        What::Took { call } | What::Wrote { call } => of(ledger, *call)
            .is_some_and(|(saga, step, _)| !is_compensated(ledger, saga) && plan(ledger, saga, step).undo.is_some()),
        _ => false,
    })?;
    let (What::Took { call: reads } | What::Wrote { call: reads }) = ledger.entries[at].what else { return None };
    let (saga, step, _) = of(ledger, reads)?;
    let (saga, reads) = (saga as u32, Some(reads));
    insert(
        ledger,
        at + 1,
        What::Entered { call: 1_000_000, saga, variant: 0, step, op: Op::Undo, fence: 1, reads, transaction: None },
    );
    Some(())
}

pub(super) fn undos_in_the_wrong_order(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let (saga, later) = undone_step(ledger, random)?;
    let earlier = (0..later).rev().find(|step| effect(ledger, saga, *step, Op::Undo).is_some())?;
    let is_of = |ledger: &Ledger, at: usize, step: u8| match ledger.entries[at].what {
        What::Entered { call, .. }
        | What::Left { call, .. }
        | What::Called { call, .. }
        | What::Took { call }
        | What::Wrote { call } => of(ledger, call) == Some((saga, step, Op::Undo)),
        _ => false,
    };
    let moved: Vec<usize> = (0..ledger.entries.len()).filter(|at| is_of(ledger, *at, earlier)).collect();
    let target = (0..ledger.entries.len()).find(|at| is_of(ledger, *at, later))?;
    let mut entries: Vec<_> = moved.iter().map(|at| ledger.entries[*at].clone()).collect();
    for at in moved.into_iter().rev() {
        ledger.entries.remove(at);
    }
    let tail = ledger.entries.split_off(target);
    ledger.entries.append(&mut entries);
    ledger.entries.extend(tail);
    Some(())
}

pub(super) fn undo_with_a_foreign_output(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Entered { op: Op::Undo, .. }))?;
    let What::Entered { reads, .. } = &mut ledger.entries[at].what else { return None };
    *reads = Some(1_000_000);
    Some(())
}

pub(super) fn undo_without_the_output_it_takes(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |ledger, what| match what {
        What::Entered { op: Op::Undo, saga, step, .. } => {
            plan(ledger, *saga as usize, *step).undo.as_ref().is_some_and(|undo| !undo.takes_unknown)
        }
        _ => false,
    })?;
    let What::Entered { reads, .. } = &mut ledger.entries[at].what else { return None };
    *reads = None;
    Some(())
}

pub(super) fn done_after_the_undo(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let (saga, step) = undone_step(ledger, random)?;
    do_after_undo(ledger, saga, step)
}

pub(super) fn done_after_it_was_barred(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Barred { .. }))?;
    let What::Barred { call } = ledger.entries[at].what else { return None };
    let (saga, step, _) = of(ledger, call)?;
    let call = calls(ledger, saga, step, Op::Do).pop()?;
    insert(ledger, at + 1, What::Took { call });
    Some(())
}

pub(super) fn compensated_without_a_cause(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let (chosen, _) = failed_step(ledger, random)?;
    for at in 0..ledger.entries.len() {
        if let What::Left { call, .. } = ledger.entries[at].what
            && of(ledger, call).is_some_and(|(saga, ..)| saga == chosen)
        {
            ledger.entries[at].what = What::Left { call, how: Left::Done };
        }
    }
    Some(())
}

pub(super) fn steps_out_of_order(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let saga = random.below(ledger.sagas.len() as u64) as usize;
    let (first, second) = (effect(ledger, saga, 0, Op::Do)?, effect(ledger, saga, 1, Op::Do)?);
    let entry = ledger.entries.remove(first);
    ledger.entries.insert(second, entry);
    Some(())
}

pub(super) fn saga_left_unfinished(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let saga = random.below(ledger.sagas.len() as u64) as usize;
    ledger.finals[saga].standing = Standing::Unfinished;
    Some(())
}

pub(super) fn saga_left_stuck(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let saga = random.below(ledger.sagas.len() as u64) as usize;
    ledger.finals[saga].standing = Standing::Stuck;
    Some(())
}

pub(super) fn stuck_without_a_cause(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::StartAnswered { .. }))?;
    let call = ledger.entries[..=at].iter().rev().find_map(|entry| match entry.what {
        What::StartCalled { saga, .. } => Some(saga),
        _ => None,
    });
    insert(ledger, at + 1, What::StuckSeen { saga: call? });
    let has_begun = ledger.entries[..at].iter().any(|entry| matches!(entry.what, What::Entered { .. }));
    (!has_begun).then_some(())
}

pub(super) fn pivot_done_and_compensated(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let (saga, step) = undone_step(ledger, random)?;
    ledger.sagas[saga].variants[0].steps[usize::from(step)].is_pivot = true;
    Some(())
}
