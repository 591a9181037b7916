//! G8, G10 and G11: nothing spins, nothing is left over, nothing is forgotten.

use std::collections::BTreeSet;

use super::book::{Book, broken};
use super::violation::{Guarantee, Violation};
use super::{Act, Op, What};

/// A policy may be gone through once for the answer and once to settle what is unknown.
const TURNS: u32 = 2;
/// From the pivot on a step is tried for a day, ever more slowly: an engine that calls it more often in one run is spinning.
const FORWARD_CALLS_MAX: u32 = 1_000;

pub(super) fn check(book: &Book<'_>, found: &mut Vec<Violation>) {
    for saga in 0..book.sagas.len() {
        attempts(book, saga, found);
    }
    shut_down(book, found);
    let rest = &book.ledger.rest;
    for panic in &rest.panics {
        broken(found, Guarantee::G10, None, format!("a task of the engine panicked: {panic}"));
    }
    let mut none_left = |guarantee, count: u64, what: &str| {
        if count > 0 {
            broken(found, guarantee, None, format!("{count} {what}"));
        }
    };
    none_left(Guarantee::G4, rest.outbox, "messages were never sent");
    none_left(Guarantee::G11, rest.forgotten, "sagas wait for nothing");
    none_left(Guarantee::G8, rest.work_of_ended, "work rows belong to sagas that have ended");
    none_left(Guarantee::G4, rest.unknown_messages, "messages were said to be kept, and are not known");
    none_left(Guarantee::G8, rest.letters, "dead letters are still open");
    none_left(Guarantee::G8, rest.work, "work rows are left where everything is over");
    none_left(Guarantee::G6, rest.strangers, "sagas are stored that no client started");
}

/// A call is repeated as often as its policy says, for each turn that an operator gives it.
fn attempts(book: &Book<'_>, saga: usize, found: &mut Vec<Violation>) {
    let of = &book.sagas[saga];
    let is_uncounted = |what: &What| matches!(what, What::Crashed | What::Paused | What::CutOff | What::Repeated);
    let uncounted_before = |place: usize| {
        let before = &book.ledger.entries[..place];
        before.iter().filter(|entry| is_uncounted(&entry.what)).count() as u64 + u64::from(book.ledger.rest.repeats)
    };
    let retries = of.acts().filter(|act| matches!(act, Act::Retry | Act::Skip { .. })).count() as u32;
    let mut is_forward_only = false;
    for (step, plan) in of.steps() {
        is_forward_only |= plan.is_pivot;
        let undo = plan.undo.as_ref().map_or(0, |undo| undo.attempts);
        for (op, attempts) in [(Op::Do, plan.attempts), (Op::Undo, undo)] {
            // Behind a savepoint that it shares a handler is called again in the same transaction when another one failed.
            let turns = book.calls_of(saga, step, op).map(|call| call.transaction.ok_or(call.number));
            let calls = turns.collect::<BTreeSet<_>>().len() as u64;
            let counted = (TURNS + retries) * attempts;
            let counted = if is_forward_only && op == Op::Do { counted.max(FORWARD_CALLS_MAX) } else { counted };
            let last = book.calls_of(saga, step, op).map(|call| call.entered).max().unwrap_or_default();
            let most = u64::from(counted) + uncounted_before(last);
            if calls > most {
                let about = format!("{} was called {calls} times, which is more than {most}", of.name(step, op));
                broken(found, Guarantee::G8, Some(saga), about);
            }
        }
    }
}

/// A process that said that it has shut down makes no more calls.
fn shut_down(book: &Book<'_>, found: &mut Vec<Violation>) {
    let entries = book.ledger.entries.iter().enumerate();
    for (place, entry) in entries.filter(|(_, entry)| entry.what == What::ShutDown) {
        let after = book.calls.values().find(|call| call.process == entry.process && call.entered > place);
        if let Some(call) = after {
            let about = format!("process {} had shut down, and began call {}", entry.process, call.number);
            broken(found, Guarantee::G10, Some(call.saga), about);
        }
    }
}
