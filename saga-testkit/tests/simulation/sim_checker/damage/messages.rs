//! Damages of G4 and G9: messages.

#![expect(clippy::unnecessary_wraps, reason = "every damage has one signature, for the table")]

use saga_testkit::checker::{Ledger, Left, Op, What};
use saga_testkit::sim::Random;

use super::tools::{insert, of, place, plan};

pub(super) fn message_lost(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Delivered { .. }))?;
    let What::Delivered { call: lost, nth: lost_nth, .. } = ledger.entries[at].what else { return None };
    ledger
        .entries
        .retain(|entry| !matches!(entry.what, What::Delivered { call, nth, .. } if (call, nth) == (lost, lost_nth)));
    Some(())
}

pub(super) fn message_of_a_rolled_back_attempt(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Left { how: Left::Failed, .. }))?;
    let What::Left { call, .. } = ledger.entries[at].what else { return None };
    let (saga, _, op) = of(ledger, call)?;
    if op == Op::Undo {
        return None;
    }
    let (tenant, key) = (ledger.sagas[saga].tenant.clone(), ledger.sagas[saga].key.clone());
    insert(ledger, at + 1, What::Delivered { message: "ghost".to_owned(), tenant, key, call, nth: 0 });
    Some(())
}

pub(super) fn message_out_of_nothing(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = random.below(ledger.entries.len() as u64) as usize;
    let (tenant, key) = (String::new(), "k2".to_owned());
    insert(ledger, at, What::Delivered { message: "ghost".to_owned(), tenant, key, call: 1_000_000, nth: 0 });
    Some(())
}

pub(super) fn message_under_two_ids(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Delivered { .. }))?;
    let mut what = ledger.entries[at].what.clone();
    let What::Delivered { message, .. } = &mut what else { return None };
    message.push_str("-again");
    insert(ledger, at + 1, what);
    Some(())
}

pub(super) fn outbox_not_empty(ledger: &mut Ledger, _: &mut Random) -> Option<()> {
    ledger.rest.outbox = 1;
    Some(())
}

pub(super) fn events_swapped(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Delivered { .. }))?;
    let What::Delivered { call, key, tenant, .. } = ledger.entries[at].what.clone() else { return None };
    let later = ledger.entries.iter().enumerate().skip(at).find_map(|(later, entry)| match &entry.what {
        What::Delivered { call: other, key: other_key, tenant: other_tenant, .. } => {
            (*other != call && (other_key, other_tenant) == (&key, &tenant)).then_some(later)
        }
        _ => None,
    })?;
    // Every delivery of the first call goes behind the first delivery of the later one.
    let later = ledger.entries[later].clone();
    let (moved, mut kept): (Vec<_>, Vec<_>) = std::mem::take(&mut ledger.entries)
        .into_iter()
        .partition(|entry| matches!(entry.what, What::Delivered { call: other, .. } if other == call));
    let behind = kept.iter().position(|entry| *entry == later)? + 1;
    kept.splice(behind..behind, moved);
    ledger.entries = kept;
    Some(())
}

pub(super) fn events_under_two_ordering_keys(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Delivered { .. }))?;
    let What::Delivered { call, .. } = ledger.entries[at].what.clone() else { return None };
    // What another service does of a saga has ordering keys of its own, one a step.
    let key_of = |number| {
        let (saga, step, _) = of(ledger, number)?;
        Some((saga, plan(ledger, saga, step).host.map(|_| step)))
    };
    let key = key_of(call)?;
    let others = ledger.entries.iter().filter(|entry| match entry.what {
        What::Delivered { call: other, .. } => other != call && key_of(other) == Some(key),
        _ => false,
    });
    if others.count() == 0 {
        return None;
    }
    for entry in &mut ledger.entries {
        if let What::Delivered { call: other, key, .. } = &mut entry.what
            && *other == call
        {
            key.push_str("-other");
        }
    }
    Some(())
}
