//! What the damages have in common.

use saga_testkit::checker::{Entry, Ledger, Op, Standing, StepPlan, What};
use saga_testkit::sim::Random;

/// A random place whose entry passes.
pub(super) fn place(ledger: &Ledger, random: &mut Random, passes: impl Fn(&Ledger, &What) -> bool) -> Option<usize> {
    let places: Vec<usize> = (0..ledger.entries.len()).filter(|at| passes(ledger, &ledger.entries[*at].what)).collect();
    (!places.is_empty()).then(|| *random.pick(&places))
}

/// What a call is: its saga, its step and its direction.
pub(super) fn of(ledger: &Ledger, number: u64) -> Option<(usize, u8, Op)> {
    ledger.entries.iter().find_map(|entry| match entry.what {
        What::Entered { call, saga, step, op, .. } if call == number => Some((saga as usize, step, op)),
        _ => None,
    })
}

pub(crate) fn plan(ledger: &Ledger, saga: usize, step: u8) -> &StepPlan {
    &ledger.sagas[saga].variants[0].steps[usize::from(step)]
}

/// The first effect of a step.
pub(super) fn effect(ledger: &Ledger, saga: usize, step: u8, op: Op) -> Option<usize> {
    ledger.entries.iter().position(|entry| match entry.what {
        What::Took { call } | What::Wrote { call } => of(ledger, call) == Some((saga, step, op)),
        _ => false,
    })
}

pub(super) fn is_compensated(ledger: &Ledger, saga: usize) -> bool {
    ledger.finals[saga].standing == Standing::Compensated
}

pub(super) fn insert(ledger: &mut Ledger, at: usize, what: What) {
    let mut entry = ledger.entries[at.min(ledger.entries.len() - 1)].clone();
    entry.what = what;
    ledger.entries.insert(at, entry);
}

pub(crate) fn calls(ledger: &Ledger, saga: usize, step: u8, op: Op) -> Vec<u64> {
    let numbers = ledger.entries.iter().filter_map(|entry| match entry.what {
        What::Entered { call, .. } if of(ledger, call) == Some((saga, step, op)) => Some(call),
        _ => None,
    });
    numbers.collect()
}

/// Where a call began.
pub(super) fn entered(ledger: &Ledger, number: u64) -> Option<usize> {
    ledger.entries.iter().position(|entry| matches!(entry.what, What::Entered { call, .. } if call == number))
}

/// Inserts at that place another call like that one, whose epoch is so much higher.
pub(super) fn called_anew(ledger: &mut Ledger, number: u64, epochs: u64, at: usize) -> Option<()> {
    const ADDED: u64 = 1_000_000;
    let is_told = |entry: &&Entry| matches!(entry.what, What::Told { call, .. } if call == number);
    let mut told = ledger.entries.iter().find(is_told)?.what.clone();
    let mut begun = ledger.entries[entered(ledger, number)?].what.clone();
    let (What::Told { call: one, .. }, What::Entered { call: other, fence, .. }) = (&mut told, &mut begun) else {
        return None;
    };
    (*one, *other, *fence) = (ADDED, ADDED, *fence + epochs);
    insert(ledger, at, begun);
    insert(ledger, at + 1, told);
    Some(())
}

/// Moves what a step did behind its undo.
pub(super) fn do_after_undo(ledger: &mut Ledger, saga: usize, step: u8) -> Option<()> {
    let done = effect(ledger, saga, step, Op::Do)?;
    let undone = effect(ledger, saga, step, Op::Undo)?;
    let entry = ledger.entries.remove(done);
    ledger.entries.insert(undone, entry);
    Some(())
}

/// Takes all there is of a step's undo away.
pub(super) fn remove_undo(ledger: &mut Ledger, saga: usize, step: u8) {
    let numbers = calls(ledger, saga, step, Op::Undo);
    ledger.entries.retain(|entry| match &entry.what {
        What::Entered { call, .. }
        | What::Left { call, .. }
        | What::Called { call, .. }
        | What::Took { call }
        | What::Wrote { call }
        | What::Delivered { call, .. } => !numbers.contains(call),
        _ => true,
    });
    ledger.finals[saga].records.retain(|record| (record.step, record.op) != (step, Op::Undo));
}
