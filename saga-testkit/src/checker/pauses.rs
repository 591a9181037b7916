//! G5: while a saga is paused nothing new of it begins.

use super::book::{Book, SagaBook, broken};
use super::calls::Call;
use super::violation::{Guarantee, Violation};
use super::{Left, Op, What};

/// From where to where in the ledger a saga was certainly paused.
#[derive(Debug, Clone, Copy)]
struct Window {
    from: usize,
    until: usize,
}

impl Window {
    fn holds(self, place: usize) -> bool {
        self.from < place && place < self.until
    }
}

pub(super) fn check(book: &Book<'_>, found: &mut Vec<Violation>) {
    for saga in 0..book.sagas.len() {
        // Who ends a saga by force takes what follows upon himself.
        if book.sagas[saga].is_forced() {
            continue;
        }
        for window in windows(book, saga) {
            let mut note = |about: String| broken(found, Guarantee::G5, Some(saga), about);
            goes_on(book, saga, window, &mut note);
            tries_again(book, saga, window, &mut note);
        }
    }
}

/// Where a client was told that the saga is paused, until a client resumes it. A call that was not answered may take
/// effect at any time, so that behind one to resume nothing is certain.
fn windows(book: &Book<'_>, saga: usize) -> Vec<Window> {
    let (mut open, mut windows, mut resuming) = (None, Vec::new(), Vec::new());
    let mut pausing = Vec::new();
    for (place, entry) in book.ledger.entries.iter().enumerate() {
        match &entry.what {
            What::PauseCalled { call, saga: of } if *of as usize == saga => pausing.push((*call, resuming.is_empty())),
            What::PauseAnswered { call, is_paused: true } => {
                let is_certain = pausing.iter().any(|(other, is_certain)| other == call && *is_certain);
                if is_certain && resuming.is_empty() {
                    open = open.or(Some(place));
                }
            }
            What::ResumeCalled { call, saga: of } if *of as usize == saga => {
                windows.extend(open.take().map(|from| Window { from, until: place }));
                resuming.push(*call);
                for (_, is_certain) in &mut pausing {
                    *is_certain = false;
                }
            }
            What::ResumeAnswered { call } => resuming.retain(|other| other != call),
            _ => {}
        }
    }
    windows.extend(open.map(|from| Window { from, until: usize::MAX }));
    windows
}

/// What took effect while it was paused, or was undone, is followed by nothing.
fn goes_on(book: &Book<'_>, saga: usize, window: Window, note: &mut impl FnMut(String)) {
    let of = &book.sagas[saga];
    for op in [Op::Do, Op::Undo] {
        for (step, _) in of.steps().filter(|(step, _)| !of.is_skipped(*step, op)) {
            let Some((ended, _)) = book.effect_of(saga, step, op).filter(|(at, _)| window.holds(*at)) else { continue };
            let follows = of.steps().map(|(other, _)| other).filter(|other| comes_after(of, op, *other, step));
            for next in follows {
                let mut calls = book.calls_of(saga, next, op);
                let is_new = |call: &Call<'_>| ended < call.entered && call.entered < window.until;
                // A success that was reported late reopens a saga that had ended, and ended its pause.
                let is_sure = |call: &Call<'_>| op == Op::Do || !book.is_disturbed_before(call.entered);
                if let Some(call) = calls.find(|call| is_new(call) && is_sure(call)) {
                    let (next, step) = (of.name(next, op), of.name(step, op));
                    note(format!("{next} began in call {} behind {step}, while the saga was paused", call.number));
                }
            }
        }
    }
}

/// Whether the one begins only when the other has ended. What other services undo they undo in their own time. A saga that
/// is a step is not paused with the one that it is a step of.
fn comes_after(of: &SagaBook<'_>, op: Op, next: u8, step: u8) -> bool {
    match op {
        _ if of.is_sub(next) && of.is_sub(step) => false,
        Op::Do => of.is_behind(next, step),
        Op::Undo => of.is_behind(step, next) && of.host(step).is_none() && of.host(next).is_none(),
    }
}

/// What failed while it was paused is not tried again.
fn tries_again(book: &Book<'_>, saga: usize, window: Window, note: &mut impl FnMut(String)) {
    let of = &book.sagas[saga];
    for (step, _) in of.steps().filter(|(step, _)| of.host(*step).is_none() && !of.is_sub(*step)) {
        for op in [Op::Do, Op::Undo] {
            let failed = |call: &&Call<'_>| match call.left {
                Some((at, Left::Failed | Left::NotSent)) => window.holds(at),
                _ => false,
            };
            for call in book.calls_of(saga, step, op).filter(failed) {
                let ended = call.left.map_or(usize::MAX, |(at, _)| at);
                // Behind a savepoint that it shares a handler is called again in the same transaction.
                let is_again = |other: &&Call<'_>| {
                    ended < other.entered
                        && other.entered < window.until
                        && (other.transaction.is_none() || other.transaction != call.transaction)
                        && !book.is_disturbed_before(other.entered)
                };
                if let Some(again) = book.calls_of(saga, step, op).find(is_again) {
                    let name = of.name(step, op);
                    note(format!("{name} was tried again in call {}, while the saga was paused", again.number));
                }
            }
        }
    }
}
