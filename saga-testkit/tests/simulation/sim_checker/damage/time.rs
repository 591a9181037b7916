//! Damages of G5, as far as it is about time.

use saga_testkit::checker::{Ledger, Op, Standing, What};
use saga_testkit::sim::Random;

use super::tools::{calls, place};

pub(super) fn begun_too_early(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Entered { .. }))?;
    let What::Entered { saga, .. } = ledger.entries[at].what else { return None };
    ledger.sagas[saga as usize].time.begins_in = ledger.entries[at].at + 1;
    Some(())
}

pub(super) fn awake_too_early(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Entered { op: Op::Do, .. }))?;
    let What::Entered { saga, step, .. } = ledger.entries[at].what else { return None };
    let late = ledger.entries[at].at + 1;
    let variants = &mut ledger.sagas[saga as usize].variants;
    let nap = &mut variants[0].steps[usize::from(step)].nap;
    if random.per_mille(500) {
        nap.lasts = late;
    } else {
        nap.until = late;
    }
    (!calls(ledger, saga as usize, step, Op::Do).is_empty()).then_some(())
}

pub(super) fn overdue_too_early(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let saga = compensated(ledger)?;
    let last = ledger.entries.last()?.at;
    ledger.sagas[saga].time.within = Some(last + 1);
    ledger.finals[saga].overdue_at = Some(random.below(last + 1));
    Some(())
}

pub(super) fn overdue_without_a_deadline(ledger: &mut Ledger, _: &mut Random) -> Option<()> {
    let saga = compensated(ledger)?;
    ledger.sagas[saga].time.within = None;
    ledger.finals[saga].overdue_at = Some(ledger.entries.last()?.at);
    Some(())
}

pub(super) fn completed_though_overdue(ledger: &mut Ledger, _: &mut Random) -> Option<()> {
    let saga = ledger.finals.iter().position(|end| end.standing == Standing::Completed)?;
    ledger.sagas[saga].time.within = Some(0);
    ledger.finals[saga].overdue_at = Some(ledger.entries.last()?.at);
    Some(())
}

fn compensated(ledger: &Ledger) -> Option<usize> {
    ledger.finals.iter().position(|end| end.standing == Standing::Compensated)
}
