//! G12: tenants never meet.

use std::collections::BTreeMap;

use super::book::{Book, broken};
use super::violation::{Guarantee, Violation};
use super::{Answer, Op, What};

pub(super) fn check(book: &Book<'_>, found: &mut Vec<Violation>) {
    keys(book, found);
    messages(book, found);
    refusals(book, found);
    transactions(book, found);
    batches(book, found);
    for call in book.calls.values() {
        let read = call.reads.and_then(|reads| book.calls.get(&reads));
        if let Some(read) = read.filter(|read| read.saga != book.doer_of(call.saga, read.step)) {
            let (own, other) = (&book.sagas[call.saga].plan, &book.sagas[read.saga].plan);
            let guarantee = if own.tenant == other.tenant { Guarantee::G1 } else { Guarantee::G12 };
            broken(
                found,
                guarantee,
                Some(call.saga),
                format!("call {} was given an output of saga #{}", call.number, read.saga),
            );
        }
    }
}

/// No two step keys look alike outside.
fn keys(book: &Book<'_>, found: &mut Vec<Violation>) {
    let mut owners: BTreeMap<&str, (usize, u8, Op)> = BTreeMap::new();
    for call in book.calls.values() {
        let Some(key) = call.key else { continue };
        let step = (call.saga, call.step, call.op);
        let owner = *owners.entry(key).or_insert(step);
        let is_again = book.is_reborn(call.saga, owner.0) || book.is_reborn(owner.0, call.saga);
        if owner == step || (is_again && (owner.1, owner.2) == (step.1, step.2)) {
            continue;
        }
        let (one, other) = (&book.sagas[owner.0].plan.tenant, &book.sagas[call.saga].plan.tenant);
        let guarantee = if one == other { Guarantee::G3 } else { Guarantee::G12 };
        broken(found, guarantee, Some(call.saga), format!("the key {key} is also that of saga #{}", owner.0));
    }
}

/// Unless the settings let tenants share commits, a transaction is of one tenant.
fn transactions(book: &Book<'_>, found: &mut Vec<Violation>) {
    if book.ledger.shares_tenants {
        return;
    }
    let mut firsts: BTreeMap<u64, usize> = BTreeMap::new();
    for call in book.calls.values() {
        let Some(transaction) = call.transaction else { continue };
        let first = *firsts.entry(transaction).or_insert(call.saga);
        if book.sagas[first].plan.tenant != book.sagas[call.saga].plan.tenant {
            let about = format!("call {} shares a transaction with saga #{first} of another tenant", call.number);
            broken(found, Guarantee::G12, Some(call.saga), about);
        }
    }
}

/// One call of a batch step has the inputs of one tenant, whatever the settings are.
fn batches(book: &Book<'_>, found: &mut Vec<Violation>) {
    for entry in &book.ledger.entries {
        let What::BatchCalled { calls } = &entry.what else { continue };
        let mut sagas = calls.iter().filter_map(|call| book.calls.get(call)).map(|call| call.saga);
        let Some(first) = sagas.next() else { continue };
        if let Some(other) = sagas.find(|saga| book.sagas[*saga].plan.tenant != book.sagas[first].plan.tenant) {
            let about = format!("a batch step was called for it and for saga #{other} of another tenant at once");
            broken(found, Guarantee::G12, Some(first), about);
        }
    }
}

fn messages(book: &Book<'_>, found: &mut Vec<Violation>) {
    for entry in &book.ledger.entries {
        let What::Delivered { tenant, call, message, .. } = &entry.what else { continue };
        let Some(saga) = book.calls.get(call).map(|call| call.saga) else { continue };
        if book.sagas[saga].plan.tenant != *tenant {
            let about = format!("the message {message} says that it is of tenant {tenant:?}");
            broken(found, Guarantee::G12, Some(saga), about);
        }
    }
}

/// A key that is taken in one tenant is free in another.
fn refusals(book: &Book<'_>, found: &mut Vec<Violation>) {
    for (saga, of) in book.sagas.iter().enumerate() {
        let offered = of.starts.iter().map(|start| start.1).collect::<std::collections::BTreeSet<_>>();
        let refused = of.starts.iter().any(|start| {
            book.ledger.entries.iter().any(|entry| {
                matches!(&entry.what, What::StartAnswered { call, answer: Answer::Refused } if *call == start.2)
            })
        });
        let namesake =
            book.sagas.iter().any(|other| other.plan.key == of.plan.key && other.plan.tenant != of.plan.tenant);
        if refused && namesake && offered.len() == 1 {
            broken(found, Guarantee::G12, Some(saga), "its key was refused, and only another tenant has that key");
        }
    }
}
