//! Damages of G5: what a person held up goes on.

use saga_testkit::checker::{Ledger, Left, Op, What};
use saga_testkit::sim::Random;

use super::tools::{effect, insert, of, place, plan};

const ADDED: u64 = 1_000_000;

/// A person was told at the place that the saga is paused.
fn pause(ledger: &mut Ledger, at: usize, saga: usize) {
    insert(ledger, at, What::PauseAnswered { call: ADDED, is_paused: true });
    insert(ledger, at, What::PauseCalled { call: ADDED, saga: saga as u32 });
}

fn has_two_effects(ledger: &Ledger, saga: usize, op: Op) -> Option<usize> {
    let count = ledger.sagas[saga].variants[0].steps.len() as u8;
    let is_here = |step: &u8| op == Op::Do || plan(ledger, saga, *step).host.is_none();
    let mut effects: Vec<usize> =
        (0..count).filter(is_here).filter_map(|step| effect(ledger, saga, step, op)).collect();
    effects.sort_unstable();
    (effects.len() > 1).then(|| effects[0])
}

pub(super) fn done_while_paused(ledger: &mut Ledger, _: &mut Random) -> Option<()> {
    let saga = (0..ledger.finals.len()).find(|saga| has_two_effects(ledger, *saga, Op::Do).is_some())?;
    pause(ledger, 0, saga);
    Some(())
}

pub(super) fn undone_while_paused(ledger: &mut Ledger, _: &mut Random) -> Option<()> {
    let (saga, at) =
        (0..ledger.finals.len()).find_map(|saga| Some((saga, has_two_effects(ledger, saga, Op::Undo)?)))?;
    pause(ledger, at, saga);
    Some(())
}

pub(super) fn tried_again_while_paused(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |ledger, what| match what {
        What::Left { call, how: Left::Failed | Left::NotSent } => of(ledger, *call).is_some_and(|(saga, step, op)| {
            let last = super::tools::calls(ledger, saga, step, op).last().copied();
            plan(ledger, saga, step).host.is_none() && last != Some(*call)
        }),
        _ => false,
    })?;
    let What::Left { call, .. } = ledger.entries[at].what else { return None };
    let (saga, ..) = of(ledger, call)?;
    pause(ledger, at, saga);
    Some(())
}
