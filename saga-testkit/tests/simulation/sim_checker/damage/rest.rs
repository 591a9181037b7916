//! Damages of G8, G10, G11 and G12.

#![expect(clippy::unnecessary_wraps, reason = "every damage has one signature, for the table")]

use saga_testkit::checker::{Answer, Entry, Kind, Ledger, Left, Op, Pace, What};
use saga_testkit::sim::Random;

use super::tools::{called_anew, calls, entered, insert, of, place, plan};

pub(super) fn called_without_end(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    // What can only go forward is tried for a day; everything else ends by its policy.
    let has_end =
        |ledger: &Ledger, saga: u32| !ledger.sagas[saga as usize].variants[0].steps.iter().any(|step| step.is_pivot);
    let at =
        place(ledger, random, |ledger, what| matches!(what, What::Entered { saga, .. } if has_end(ledger, *saga)))?;
    for again in 0..10 {
        let mut what = ledger.entries[at].what.clone();
        let What::Entered { call, .. } = &mut what else { return None };
        *call = 1_000_000 + again;
        insert(ledger, at, what);
    }
    Some(())
}

const PACE: Pace = Pace { lines: 4, call_max: 10, processes: 2 };

pub(super) fn calls_wait_for_long(ledger: &mut Ledger, _: &mut Random) -> Option<()> {
    ledger.pace = Some(PACE);
    let is_call = |entry: &Entry| match entry.what {
        What::Entered { saga, step, op: Op::Do, .. } => plan(ledger, saga as usize, step).kind == Kind::External,
        _ => false,
    };
    let last = ledger.entries.iter().rposition(is_call)?;
    ledger.entries[last..].iter_mut().for_each(|entry| entry.at += 60_000_000);
    Some(())
}

/// A saga that is stuck when a call of it was rejected, and none before had failed.
pub(super) fn stuck_though_all_is_certain(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    ledger.pace = Some(PACE);
    let has_pivot =
        |ledger: &Ledger, saga: usize| ledger.sagas[saga].variants[0].steps.iter().any(|step| step.is_pivot);
    let at = place(ledger, random, |ledger, what| match what {
        What::Left { call, how: Left::Rejected } => {
            of(ledger, *call).is_some_and(|(saga, ..)| !has_pivot(ledger, saga))
        }
        _ => false,
    })?;
    let What::Left { call, .. } = ledger.entries[at].what else { return None };
    let (saga, ..) = of(ledger, call)?;
    let has_failed = |entry: &Entry| match entry.what {
        What::Left { call, how: Left::Failed } => of(ledger, call).is_some_and(|(failed, ..)| failed == saga),
        _ => false,
    };
    if ledger.entries[..at].iter().any(has_failed) {
        return None;
    }
    insert(ledger, at + 1, What::StuckSeen { saga: saga as u32 });
    Some(())
}

/// The place where a call of a step outside ended so. Its saga has one variant, and nobody acted on it.
fn ended_outside(ledger: &Ledger, random: &mut Random, end: Left) -> Option<usize> {
    let is_acted_on = |it: usize| {
        ledger.entries.iter().any(|entry| matches!(entry.what, What::AuditRecord { saga, .. } if saga as usize == it))
    };
    place(ledger, random, |ledger, what| match what {
        What::Left { call, how } if *how == end => of(ledger, *call).is_some_and(|(saga, step, op)| {
            let is_plain = ledger.sagas[saga].variants.len() == 1 && ledger.finals[saga].variant == Some(0);
            let plan = plan(ledger, saga, step);
            is_plain && !is_acted_on(saga) && op == Op::Do && plan.kind == Kind::External && !plan.is_exclusive
        }),
        _ => false,
    })
}

/// The only call of a step that had waited with an owner that vanished is declined, and its saga is stuck.
pub(super) fn stuck_though_it_had_only_waited(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    ledger.pace = Some(PACE);
    let at = ended_outside(ledger, random, Left::Rejected)?;
    let What::Left { call, .. } = ledger.entries[at].what else { return None };
    let begun = entered(ledger, call)?;
    let What::Entered { saga, step, fence, .. } = ledger.entries[begun].what else { return None };
    let is_of_it = |entry: &Entry| matches!(entry.what, What::Entered { saga: of, op: Op::Undo, .. } if of == saga);
    if calls(ledger, saga as usize, step, Op::Do).len() > 1 || ledger.entries.iter().any(is_of_it) {
        return None;
    }
    insert(ledger, at + 1, What::StuckSeen { saga });
    insert(ledger, begun, What::TookWaiting { saga, step, epoch: fence });
    Some(())
}

/// One process alone, which does not end, calls again what it has the answer to.
pub(super) fn called_again_by_who_had_the_answer(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    ledger.pace = Some(Pace { processes: 1, ..PACE });
    ledger.entries.retain(|entry| !matches!(entry.what, What::Crashed | What::ShutDown));
    let at = ended_outside(ledger, random, Left::Done)?;
    let What::Left { call, .. } = ledger.entries[at].what else { return None };
    called_anew(ledger, call, 1, ledger.entries.len())
}

pub(super) fn work_left_behind(ledger: &mut Ledger, _: &mut Random) -> Option<()> {
    ledger.rest.work_of_ended = 1;
    Some(())
}

pub(super) fn engine_panicked(ledger: &mut Ledger, _: &mut Random) -> Option<()> {
    ledger.rest.panics.push("index out of bounds".to_owned());
    Some(())
}

pub(super) fn work_after_shutdown(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Entered { .. }))?;
    insert(ledger, at, What::ShutDown);
    Some(())
}

pub(super) fn saga_forgotten(ledger: &mut Ledger, _: &mut Random) -> Option<()> {
    ledger.rest.forgotten = 1;
    Some(())
}

pub(super) fn message_of_another_tenant(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Delivered { .. }))?;
    let What::Delivered { tenant, .. } = &mut ledger.entries[at].what else { return None };
    "third".clone_into(tenant);
    Some(())
}

pub(super) fn key_shared_by_tenants(ledger: &mut Ledger, _: &mut Random) -> Option<()> {
    let mut called = [0, 0];
    for at in 0..ledger.entries.len() {
        let What::Called { call, .. } = ledger.entries[at].what else { continue };
        let (saga, ..) = of(ledger, call)?;
        if let Some(count) = called.get_mut(saga) {
            *count += 1;
            let What::Called { key, .. } = &mut ledger.entries[at].what else { return None };
            "twice:step".clone_into(key);
        }
    }
    called.iter().all(|count| *count > 0).then_some(())
}

pub(super) fn output_of_another_tenant(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let foreign = calls(ledger, 1, 0, Op::Do).pop()?;
    let at = place(ledger, random, |_, what| matches!(what, What::Entered { saga: 0, reads: Some(_), .. }))?;
    let What::Entered { reads, .. } = &mut ledger.entries[at].what else { return None };
    *reads = Some(foreign);
    Some(())
}

pub(super) fn refused_because_of_another_tenant(ledger: &mut Ledger, _: &mut Random) -> Option<()> {
    let mut own = None;
    for at in 0..ledger.entries.len() {
        match ledger.entries[at].what {
            What::StartCalled { call, saga: 1, variant: 0 } => own = Some(call),
            What::StartCalled { saga: 1, .. } => return None,
            What::StartAnswered { call, .. } if own == Some(call) => {
                ledger.entries[at].what = What::StartAnswered { call, answer: Answer::Refused };
            }
            _ => {}
        }
    }
    own.map(|_| ())
}
