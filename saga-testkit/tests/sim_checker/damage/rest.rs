//! Damages of G8, G10, G11 and G12.

#![expect(clippy::unnecessary_wraps, reason = "every damage has one signature, for the table")]

use saga_testkit::checker::{Answer, Ledger, Op, What};
use saga_testkit::sim::Random;

use super::tools::{calls, insert, of, place};

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
