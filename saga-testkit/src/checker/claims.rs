//! G7: a call outside does not begin under a claim that another process has taken over.

use std::collections::BTreeMap;

use super::book::{Book, broken};
use super::violation::{Guarantee, Violation};

pub(super) fn check(book: &Book<'_>, found: &mut Vec<Violation>) {
    let mut newest: BTreeMap<(usize, &str), u64> = BTreeMap::new();
    let mut calls: Vec<_> = book.calls.values().filter(|call| call.told.is_some()).collect();
    calls.sort_unstable_by_key(|call| call.entered);
    for call in calls {
        let Some(told) = call.told else { continue };
        let newest = newest.entry((call.saga, told.key)).or_default();
        if call.fence < *newest {
            let (name, fence) = (book.sagas[call.saga].name(call.step, call.op), call.fence);
            let about = format!("{name}: a call began under the epoch {fence} behind one under the epoch {newest}");
            broken(found, Guarantee::G7, Some(call.saga), about);
        }
        *newest = call.fence.max(*newest);
    }
}
