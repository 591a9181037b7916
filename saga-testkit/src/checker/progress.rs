//! G7 and G3: what a call is told of how far the calls before it were.

use std::collections::BTreeMap;

use super::What;
use super::book::{Book, broken};
use super::calls::{Call, Told};
use super::violation::{Guarantee, Violation};

pub(super) fn check(book: &Book<'_>, found: &mut Vec<Violation>) {
    let reporters: BTreeMap<u64, &Call<'_>> =
        book.calls.values().flat_map(|call| call.reports.iter().map(move |report| (*report, call))).collect();
    let mut by_key: BTreeMap<(usize, &str), Vec<(&Call<'_>, Told<'_>)>> = BTreeMap::new();
    for call in book.calls.values() {
        let Some(told) = call.told else { continue };
        origin(call, told, &reporters, found);
        by_key.entry((call.saga, told.key)).or_default().push((call, told));
    }
    for calls in by_key.values_mut() {
        calls.sort_by_key(|(call, _)| call.fence);
        for pair in calls.windows(2) {
            in_order(pair[0], pair[1], found);
        }
        if let [first, second, ..] = calls[..] {
            at_once(book, first, second, found);
        }
    }
}

/// What is told was reported, by an earlier call of the same key.
fn origin(call: &Call<'_>, told: Told<'_>, reporters: &BTreeMap<u64, &Call<'_>>, found: &mut Vec<Violation>) {
    let Some(report) = told.report else { return };
    let Some(reporter) = reporters.get(&report) else {
        let about = format!("call {} was told the report {report}, which no call made", call.number);
        return broken(found, Guarantee::G3, Some(call.saga), about);
    };
    if reporter.told.is_none_or(|of| of.key != told.key) || reporter.saga != call.saga {
        let about = format!("call {} was told what call {} reported, of another step", call.number, reporter.number);
        broken(found, Guarantee::G12, Some(call.saga), about);
    }
}

/// A call is told what the owner before it reported, or what that one was told itself: what older owners report behind its
/// claim changes nothing, and what it knew is not forgotten.
fn in_order(
    (before, told_before): (&Call<'_>, Told<'_>),
    (call, told): (&Call<'_>, Told<'_>),
    found: &mut Vec<Violation>,
) {
    let is_right =
        told.report == told_before.report || told.report.is_some_and(|report| before.reports.contains(&report));
    if !is_right {
        let (report, number) = (told.report, call.number);
        let about =
            format!("call {number} was told {report:?}, which the call before it was neither told nor reported");
        broken(found, Guarantee::G7, Some(call.saga), about);
    }
}

/// Where the first owner wrote down that its attempt failed, the second attempt is told what the first one reported last.
/// A row without another owner in between comes with the next epoch, and with an attempt more only if that was written down.
fn at_once(
    book: &Book<'_>,
    (first, told_first): (&Call<'_>, Told<'_>),
    (second, told): (&Call<'_>, Told<'_>),
    found: &mut Vec<Violation>,
) {
    let is_next = (first.fence, told_first.attempt) == (1, 1) && (second.fence, told.attempt) == (2, 2);
    let last = first.reports.last().copied();
    if !is_next || told.report == last || has_shut_down(book, first.process) {
        return;
    }
    let (report, number) = (told.report, second.number);
    let about = format!("call {number} was told {report:?}, and the attempt before it had reported {last:?} last");
    broken(found, Guarantee::G3, Some(second.saga), about);
}

/// A process that was told to end may leave what it could not write in time.
fn has_shut_down(book: &Book<'_>, process: u16) -> bool {
    book.ledger.entries.iter().any(|entry| entry.process == process && entry.what == What::ShutDown)
}
