//! G5, as far as it is about time: nothing begins before its time, and no saga is called off before its deadline.

use super::book::{Book, broken};
use super::calls::Call;
use super::violation::{Guarantee, Violation};
use super::{Nap, Op, Standing};

pub(super) fn check(book: &Book<'_>, found: &mut Vec<Violation>) {
    for saga in 0..book.sagas.len() {
        let mut note = |about: String| broken(found, Guarantee::G5, Some(saga), about);
        begins(book, saga, &mut note);
        naps(book, saga, &mut note);
        overdue(book, saga, &mut note);
    }
}

/// Nothing of a saga that begins later is called before that. It is counted from a start, which takes effect behind its call.
fn begins(book: &Book<'_>, saga: usize, note: &mut impl FnMut(String)) {
    let Some(begins_at) = begins_at(book, saga) else { return };
    let calls = book.sagas[saga].calls.iter().filter_map(|number| book.calls.get(number));
    if let Some(call) = calls.into_iter().find(|call| book.time_of(call.entered) < begins_at) {
        note(format!("call {} was made before the saga was to begin", call.number));
    }
}

/// A step behind a nap begins no earlier than so long after what it comes after took effect.
fn naps(book: &Book<'_>, saga: usize, note: &mut impl FnMut(String)) {
    let of = &book.sagas[saga];
    let Some(begins_at) = begins_at(book, saga).or(restarted_at(book, saga)) else { return };
    for (step, plan) in of.steps().filter(|(_, plan)| plan.nap != Nap::default()) {
        let before: Vec<_> = of.steps().filter(|(before, _)| of.is_behind(step, *before)).collect();
        // A saga that is restarted behind a nap takes it over with what stands before it.
        if !of.restarts.is_empty() && before.iter().all(|(before, _)| of.is_left_out(*before)) {
            continue;
        }
        let before = before.into_iter();
        let effects = before.filter_map(|(before, _)| book.effect_of(saga, before, Op::Do));
        let from = effects.map(|(at, call)| took_effect(book, at, call)).max().unwrap_or_default().max(begins_at);
        let awake = (from + plan.nap.lasts).max(plan.nap.until);
        // A start whose transaction failed leaves calls behind, and its key is then free for another variant.
        let is_of_failed_start = |call: &Call<'_>| of.accepted != Some(call.variant) && call.was_rolled_back();
        let calls = book.calls_of(saga, step, Op::Do).filter(|call| !is_of_failed_start(call));
        for call in calls.filter(|call| book.time_of(call.entered) < awake) {
            note(format!("{} was called by call {} during the nap before it", of.name(step, Op::Do), call.number));
        }
    }
}

/// A saga is called off for its deadline only when that has passed, and then it does not complete. Of one that ended in
/// time nothing is told.
fn overdue(book: &Book<'_>, saga: usize, note: &mut impl FnMut(String)) {
    let of = &book.sagas[saga];
    let Some(overdue_at) = of.end.overdue_at else { return };
    // A saga that was started instead of another one has that one's time, from its own beginning.
    let begins_at = begins_at(book, saga).or(restarted_at(book, saga));
    let (Some(within), Some(begins_at)) = (of.plan.time.within, begins_at) else {
        return note("the saga was called off for a deadline, and it has none".to_owned());
    };
    if overdue_at < begins_at + within {
        note("the saga was called off before its deadline had passed".to_owned());
    }
    if of.end.standing == Standing::Completed && !of.is_forced() {
        note("the saga is completed, and was called off for its deadline".to_owned());
    }
    let ended = of.outcomes.iter().find(|(_, told)| matches!(told, Standing::Completed | Standing::Compensated));
    if ended.is_some_and(|(at, _)| book.time_of(*at) < overdue_at) {
        note("the saga was called off for its deadline after it had ended".to_owned());
    }
}

/// When a call took effect at the earliest. That a transaction was committed may be entered later, so what counts is when its
/// function returned.
fn took_effect(book: &Book<'_>, at: usize, call: &Call<'_>) -> u64 {
    let returned = call.left.map(|(left, _)| left).filter(|_| call.transaction.is_some());
    book.time_of(returned.map_or(at, |left| left.min(at)))
}

/// The earliest moment at which the saga can have begun.
fn begins_at(book: &Book<'_>, saga: usize) -> Option<u64> {
    let of = &book.sagas[saga];
    let started = of.starts.iter().map(|(at, ..)| book.time_of(*at)).min()?;
    Some(started + of.plan.time.begins_in)
}

/// The earliest moment at which it can have been started instead of another one.
fn restarted_at(book: &Book<'_>, saga: usize) -> Option<u64> {
    book.sagas[saga].restarts.iter().map(|restart| book.time_of(restart.at)).min()
}
