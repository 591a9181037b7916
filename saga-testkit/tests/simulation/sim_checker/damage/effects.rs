//! Damages of G1, G2 and G3: effects and their records.

#![expect(clippy::unnecessary_wraps, reason = "every damage has one signature, for the table")]

use saga_testkit::checker::{Kind, Ledger, Left, Op, What};
use saga_testkit::sim::Random;

use super::tools::{insert, is_compensated, of, place, plan};

pub(super) fn write_without_record(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Wrote { .. }))?;
    let What::Wrote { call } = ledger.entries[at].what else { return None };
    let (saga, step, op) = of(ledger, call)?;
    ledger.finals[saga].records.retain(|record| (record.step, record.op) != (step, op));
    Some(())
}

pub(super) fn record_without_write(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Wrote { .. }))?;
    ledger.entries.remove(at);
    Some(())
}

pub(super) fn output_of_another_attempt_recorded(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(
        ledger,
        random,
        |ledger, what| matches!(what, What::Wrote { call } if of(ledger, *call).is_some_and(|step| step.2 == Op::Do)),
    )?;
    let What::Wrote { call } = ledger.entries[at].what else { return None };
    let (saga, step, _) = of(ledger, call)?;
    ledger.finals[saga].records.iter_mut().find(|record| record.step == step)?.call = Some(call + 1000);
    Some(())
}

fn completed_without(ledger: &mut Ledger, random: &mut Random, kind: Kind) -> Option<()> {
    let at = place(ledger, random, |ledger, what| match what {
        What::Took { call } | What::Wrote { call } => of(ledger, *call).is_some_and(|(saga, step, op)| {
            op == Op::Do && plan(ledger, saga, step).kind == kind && !is_compensated(ledger, saga)
        }),
        _ => false,
    })?;
    let (What::Took { call } | What::Wrote { call }) = ledger.entries[at].what else { return None };
    let (saga, step, _) = of(ledger, call)?;
    ledger.finals[saga].records.retain(|record| record.step != step);
    ledger.entries.remove(at);
    Some(())
}

pub(super) fn completed_without_a_write(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    completed_without(ledger, random, Kind::Transactional)
}

pub(super) fn completed_without_a_call(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    completed_without(ledger, random, Kind::External)
}

pub(super) fn transaction_committed_twice(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Wrote { .. }))?;
    let what = ledger.entries[at].what.clone();
    insert(ledger, at + 1, what);
    Some(())
}

pub(super) fn write_out_of_nothing(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = random.below(ledger.entries.len() as u64) as usize;
    insert(ledger, at, What::Wrote { call: 1_000_000 });
    Some(())
}

pub(super) fn key_changes_between_attempts(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let is_repeated = |ledger: &Ledger, key: &str| {
        let same = |what: &What| matches!(what, What::Called { key: other, .. } if other == key);
        ledger.entries.iter().filter(|entry| same(&entry.what)).count() > 1
    };
    let at =
        place(ledger, random, |ledger, what| matches!(what, What::Called { key, .. } if is_repeated(ledger, key)))?;
    let What::Called { key, .. } = &mut ledger.entries[at].what else { return None };
    key.push_str("-again");
    Some(())
}

pub(super) fn effect_taken_twice_outside(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Took { .. }))?;
    let what = ledger.entries[at].what.clone();
    insert(ledger, at + 1, what);
    Some(())
}

pub(super) fn output_recorded_that_nobody_returned(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |ledger, what| match what {
        What::Left { call, how: Left::Done } => of(ledger, *call)
            .is_some_and(|(saga, step, op)| op == Op::Do && plan(ledger, saga, step).kind == Kind::External),
        _ => false,
    })?;
    let What::Left { how, .. } = &mut ledger.entries[at].what else { return None };
    *how = Left::Failed;
    Some(())
}

pub(super) fn step_reads_another_output(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Entered { op: Op::Do, reads: Some(_), .. }))?;
    let What::Entered { reads, .. } = &mut ledger.entries[at].what else { return None };
    *reads = None;
    Some(())
}
