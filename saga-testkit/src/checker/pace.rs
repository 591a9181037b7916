//! G8: where there is more work than lines, the lines are used, and what only waited is not taken for begun.

use super::book::{Book, broken};
use super::calls::Call;
use super::violation::{Guarantee, Violation};
use super::{Entry, Kind, Left, Op, What};

/// How much longer than its calls need a run may take, in percent: lines stand still while one process has less than another.
const LONGER_PERCENT: u64 = 50;
/// What a run may take beside that, in microseconds: a lease, the time until a call that is on its way must have landed, and
/// the pauses between attempts.
const SLACK: u64 = 12_000_000;
/// How long the work of a crashed, stopped or cut off process stays without an owner, in microseconds.
const TAKEN_OVER_WITHIN: u64 = 8_000_000;

pub(super) fn check(book: &Book<'_>, found: &mut Vec<Violation>) {
    let Some(pace) = book.ledger.pace else { return };
    let calls = || book.calls.values().filter(|call| is_of_a_line(book, call));
    let end = |call: &Call<'_>| call.left.map(|(at, _)| book.time_of(at));
    let lasted = |call: &Call<'_>| end(call).map_or(pace.call_max, |end| end - book.time_of(call.entered));
    // An operator acts at any time, and what stands behind an exclusive step waits for that.
    let is_held_up = |call: &Call<'_>| {
        let of = &book.sagas[call.saga];
        !of.acts.is_empty() || of.steps().any(|(_, plan)| plan.is_exclusive)
    };
    let starts = book.ledger.entries.iter().filter(|entry| matches!(entry.what, What::StartCalled { .. }));
    let begun = starts.map(|entry| entry.at).min().unwrap_or_default();
    let over =
        calls().filter(|call| !is_held_up(call)).map(|call| end(call).unwrap_or(book.time_of(call.entered))).max();
    let needed = calls().map(lasted).sum::<u64>() / u64::from(pace.lines.max(1));
    let alone: u64 = calls().filter(|call| may_have_vanished_again(book, call)).map(lasted).sum();
    let allowed = needed * (100 + LONGER_PERCENT) / 100 + SLACK + lost(book) + alone;
    let took = over.unwrap_or(begun).saturating_sub(begun);
    if took > allowed {
        let seconds = |micros: u64| micros / 1_000_000;
        let (took, needed, allowed) = (seconds(took), seconds(needed), seconds(allowed));
        let about =
            format!("its calls took {took} s; {needed} s would do on {} lines, and {allowed} s at most", pace.lines);
        broken(found, Guarantee::G8, None, about);
    }
    certain(book, found);
    only_waited(book, found);
    if pace.processes == 1 {
        answered_alone(book, found);
    }
}

/// Whether it is a call outside that holds a line.
fn is_of_a_line(book: &Book<'_>, call: &Call<'_>) -> bool {
    let of = &book.sagas[call.saga];
    let is_exclusive = of.steps().any(|(step, plan)| step == call.step && plan.is_exclusive);
    of.kind(call.step, call.op) == Some(Kind::External) && !is_exclusive
}

/// Whether it is called with no other such call beside it: what vanished twice may be what ends its processes.
fn may_have_vanished_again(book: &Book<'_>, call: &Call<'_>) -> bool {
    // One that is stopped or cut off for longer than it lives vanishes as one that crashes does.
    let vanishes = |entry: &&Entry| matches!(entry.what, What::Crashed | What::Paused | What::CutOff);
    book.ledger.entries.iter().filter(vanishes).count() >= 2
        && call.fence >= 3
        && call.told.is_some_and(|told| told.attempt >= 2)
}

/// The time in which what one process had could not go on.
fn lost(book: &Book<'_>) -> u64 {
    let mut since = 0;
    let mut lost = 0;
    for entry in &book.ledger.entries {
        match entry.what {
            What::Crashed => lost += TAKEN_OVER_WITHIN,
            What::Paused | What::CutOff => {
                since += entry.at;
                lost += TAKEN_OVER_WITHIN;
            }
            What::Resumed | What::Reconnected => lost += entry.at,
            _ => {}
        }
    }
    // Each beginning has its end.
    lost.saturating_sub(since)
}

/// Where no owner vanished, a saga of which each call was answered for certain is not stuck: nothing of it is unknown.
fn certain(book: &Book<'_>, found: &mut Vec<Violation>) {
    for (saga, of) in book.sagas.iter().enumerate() {
        let Some(stuck) = of.stuck.first().copied().filter(|stuck| !book.is_disturbed_before(*stuck)) else { continue };
        let calls = of.calls.iter().filter_map(|number| book.calls.get(number)).filter(|call| call.entered < stuck);
        let is_certain = |call: &Call<'_>| match call.left {
            Some((at, Left::Done)) => at < stuck,
            Some((at, Left::Rejected | Left::NotSent)) => at < stuck && call.op == Op::Do,
            _ => false,
        };
        let has_pivot = of.steps().any(|(_, plan)| plan.is_pivot);
        if !has_pivot && calls.into_iter().all(is_certain) {
            broken(found, Guarantee::G8, Some(saga), "the saga was stuck, and each call of it had a definite answer");
        }
    }
}

/// What only waited when its owner vanished did nothing: where it is called once by who took it, and declined, nothing of the
/// saga is unknown.
fn only_waited(book: &Book<'_>, found: &mut Vec<Violation>) {
    for entry in &book.ledger.entries {
        let What::TookWaiting { saga, step, epoch } = entry.what else { continue };
        let of = &book.sagas[saga as usize];
        let (calls, stuck) = (book.calls_of(saga as usize, step, Op::Do), of.stuck.first());
        let [call] = calls.collect::<Vec<_>>()[..] else { continue };
        let is_declined = |stuck: usize| matches!(call.left, Some((at, Left::Rejected)) if at < stuck);
        let is_first_undo = !of.calls.iter().any(|number| book.calls[number].op == Op::Undo);
        if call.fence == epoch && is_first_undo && stuck.is_some_and(|stuck| is_declined(*stuck)) {
            let about = format!("{} was stuck, though it was called once and declined", of.name(step, Op::Do));
            broken(found, Guarantee::G8, Some(saga as usize), about);
        }
    }
}

/// One process alone, which lives on, has its rows when it comes back to its store: what it has an answer to is not called
/// again.
fn answered_alone(book: &Book<'_>, found: &mut Vec<Violation>) {
    if book.ledger.entries.iter().any(|entry| matches!(entry.what, What::Crashed | What::ShutDown)) {
        return;
    }
    for call in book.calls.values().filter(|call| call.op == Op::Do && is_of_a_line(book, call)) {
        let Some((left, Left::Done | Left::Rejected)) = call.left else { continue };
        let of = &book.sagas[call.saga];
        let is_later = |other: &Call<'_>| other.entered > left && other.told.map(key) == call.told.map(key);
        if of.acts.is_empty() && book.calls_of(call.saga, call.step, call.op).any(is_later) {
            let about = format!("{} was called again by the process that had the answer", of.name(call.step, call.op));
            broken(found, Guarantee::G8, Some(call.saga), about);
        }
    }
}

fn key(told: super::calls::Told<'_>) -> &str {
    told.key
}
