//! The printed results: the timelines of the faulty orders, and the sums of the journals.

use std::collections::BTreeMap;

use saga_core::Event;
use saga_core::engine::Happened;
use saga_core::engine::TimelineStatus;

use crate::awkward::Case;
use crate::books::Entry;
use crate::events::OrderExpired;

/// Each step with its undo.
const PAIRS: [(&str, &str); 3] =
    [("reserve-stock", "release-stock"), ("charge-card", "refund-card"), ("pack-order", "unpack-order")];

/// A faulty order: its fault and its result.
pub(crate) fn show(case: &Case, timeline: &TimelineStatus, journal: &[Entry]) {
    println!("{}: {}", case.name, case.done);
    println!("  {} is {}", case.key, timeline.status);
    for entry in &timeline.entries {
        println!("    {}", line(&entry.what));
    }
    for entry in journal.iter().filter(|entry| entry.order == case.key) {
        println!("  in the books: {} {} time(s), {}", entry.what, entry.times, entry.amount);
    }
}

/// A line of a timeline.
pub(crate) fn line(happened: &Happened) -> String {
    match happened {
        Happened::Event { name, .. } => name.clone(),
        Happened::Step { step, became, reason } => {
            let why = reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
            format!("{step} {}{why}", became.as_str())
        }
        _ => String::new(),
    }
}

/// Whether the order was not shipped in time.
pub(crate) fn is_late(timeline: &TimelineStatus) -> bool {
    let is_expired =
        |happened: &Happened| matches!(happened, Happened::Event { name, .. } if name == OrderExpired::NAME);
    timeline.entries.iter().any(|entry| is_expired(&entry.what))
}

/// The problems of the journals, each in a sentence: an effect that happened twice, or remains although it was undone.
pub(crate) fn problems(ended: &BTreeMap<String, TimelineStatus>, journal: &[Entry]) -> Vec<String> {
    let mut problems = Vec::new();
    let of = |what: &str, order: &str| {
        journal
            .iter()
            .find(|entry| entry.what == what && entry.order == order)
            .map_or((0, 0), |entry| (entry.times, entry.amount))
    };
    for entry in journal.iter().filter(|entry| entry.times != 1) {
        problems.push(format!("{} happened {} times for {}", entry.what, entry.times, entry.order));
    }
    for (order, timeline) in ended {
        let is_shipped = timeline.status == saga_core::store::Status::Completed;
        if is_shipped != (of("ship-order", order).0 == 1) {
            problems.push(format!("{order} is {}, but the books of the packers say something else", timeline.status));
        }
        for (done, undone) in PAIRS {
            let stands = of(done, order).1 + of(undone, order).1;
            let is_standing = of(done, order).0 > of(undone, order).0;
            if is_standing != is_shipped || (!is_shipped && stands != 0) {
                problems.push(format!("{order} is {}, but of {done} there stands {stands}", timeline.status));
            }
        }
    }
    problems
}
