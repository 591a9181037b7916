//! G3, as it is for what comes in: a message that was acknowledged is never lost, and one decides.

use std::collections::{BTreeMap, BTreeSet};

use super::book::{Book, broken};
use super::violation::{Guarantee, Violation};
use super::{Receipt, What};

pub(super) fn check(book: &Book<'_>, found: &mut Vec<Violation>) {
    for saga in 0..book.sagas.len() {
        let mut note = |about: String| broken(found, Guarantee::G3, Some(saga), about);
        one_counts(book, saga, &mut note);
    }
}

fn one_counts(book: &Book<'_>, saga: usize, note: &mut impl FnMut(String)) {
    let mut sent: BTreeMap<u64, u64> = BTreeMap::new();
    let mut counted: BTreeSet<u64> = BTreeSet::new();
    for entry in &book.ledger.entries {
        match entry.what {
            What::SignalCalled { call, saga: of, id } if of as usize == saga => {
                sent.insert(call, id);
            }
            What::SignalAnswered { call, receipt: Receipt::Counts | Receipt::Known } => {
                counted.extend(sent.get(&call));
            }
            _ => {}
        }
    }
    if counted.len() > 1 {
        note(format!("the signals {counted:?} were told to count, each instead of the others"));
    }
    let Some(decided) = book.sagas[saga].end.signal else { return };
    if let Some(lost) = counted.iter().find(|id| **id != decided) {
        note(format!("the signal {lost} was acknowledged, and the saga went on with {decided}"));
    }
    // What was taken over from another saga was sent to that one.
    let is_heir = !book.sagas[saga].restarts.is_empty();
    if decided != 0 && !is_heir && !sent.values().any(|id| *id == decided) {
        note(format!("the saga went on with the signal {decided}, which no client sent"));
    }
}
