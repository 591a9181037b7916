//! G4 and G9: what was emitted by what was committed arrives, nothing else does, and in order.

use std::collections::{BTreeMap, BTreeSet};

use super::book::{Book, broken};
use super::calls::Call;
use super::violation::{Guarantee, Violation};
use super::{Kind, Left, Op, Recorded, What};

/// An event by the call that emitted it and its number among that call's events.
type EventRef = (u64, u8);

pub(super) fn check(book: &Book<'_>, found: &mut Vec<Violation>) {
    let first = first_deliveries(book, found);
    for saga in 0..book.sagas.len() {
        sent(book, saga, &first, found);
        order(book, saga, &first, found);
    }
}

/// Where each event arrived first, and under which ordering key; a message always has the same id.
fn first_deliveries<'a>(book: &Book<'a>, found: &mut Vec<Violation>) -> BTreeMap<EventRef, (usize, &'a str)> {
    let mut first = BTreeMap::new();
    let mut ids: BTreeMap<&str, EventRef> = BTreeMap::new();
    let mut messages: BTreeMap<EventRef, &str> = BTreeMap::new();
    for (at, entry) in book.ledger.entries.iter().enumerate() {
        let What::Delivered { message, key, call, nth, .. } = &entry.what else { continue };
        let event = (*call, *nth);
        first.entry(event).or_insert((at, key.as_str()));
        let is_same =
            *ids.entry(message).or_insert(event) == event && *messages.entry(event).or_insert(message) == message;
        let saga = book.calls.get(call).map(|call| call.saga);
        if !is_same {
            broken(found, Guarantee::G4, saga, format!("the event {event:?} came under another id: {message}"));
        }
        match book.calls.get(call) {
            None => broken(found, Guarantee::G4, None, format!("the event {event:?} was emitted by no call")),
            Some(call) if !is_committed(book, call) && !is_late(book, call) => {
                let name = book.sagas[call.saga].name(call.step, call.op);
                let about =
                    format!("{name}: an event of call {} was sent, and that call was never recorded", call.number);
                broken(found, Guarantee::G4, saga, about);
            }
            Some(_) => {}
        }
    }
    first
}

/// Whether the events of that call are to be sent.
fn is_committed(book: &Book<'_>, call: &Call<'_>) -> bool {
    let of = &book.sagas[call.saga];
    match of.kind(call.step, call.op) {
        Some(Kind::Transactional) => !call.wrote.is_empty(),
        Some(Kind::External) if call.op == Op::Do => {
            let mut records = of.end.records.iter().filter(|record| record.outcome == Recorded::Done);
            records.any(|record| record.op == Op::Do && record.call == Some(call.number) && !record.is_late)
        }
        // The record of an external undo has no output, so it does not say which of its calls it was.
        Some(Kind::External) => matches!(call.left, Some((_, Left::Done))),
        None => false,
    }
}

/// Whether the call succeeded after its step had been decided without it. Its events are sent if the saga still went
/// forward.
fn is_late(book: &Book<'_>, call: &Call<'_>) -> bool {
    let of = &book.sagas[call.saga];
    let is_external = matches!(of.kind(call.step, call.op), Some(Kind::External));
    let mut records = of.end.records.iter().filter(|record| record.outcome == Recorded::Done && record.is_late);
    is_external && records.any(|record| record.op == Op::Do && record.call == Some(call.number))
}

/// Each committed call's events arrived; of several calls that may be the recorded one, those of one of them.
fn sent(book: &Book<'_>, saga: usize, first: &BTreeMap<EventRef, (usize, &str)>, found: &mut Vec<Violation>) {
    let of = &book.sagas[saga];
    for (step, plan) in of.steps() {
        for (op, emits) in [(Op::Do, plan.emits), (Op::Undo, plan.undo.as_ref().map_or(0, |undo| undo.emits))] {
            let calls = || book.calls_of(saga, step, op).filter(|call| is_committed(book, call));
            let arrived = |call: &Call<'_>| (0..emits).filter(|nth| first.contains_key(&(call.number, *nth))).count();
            let senders = calls().filter(|call| arrived(call) > 0).count();
            let records = of.end.records.iter().filter(|record| (record.step, record.op) == (step, op));
            let rounds = records.filter(|record| record.outcome == Recorded::Done && !record.is_late).count();
            let whole = calls().filter(|call| arrived(call) == usize::from(emits)).count();
            let name = of.name(step, op);
            if emits > 0 && whole < rounds {
                let about = format!("{name} is recorded {rounds} times, and all events arrived of {whole} calls of it");
                broken(found, Guarantee::G4, Some(saga), about);
            }
            if senders > rounds {
                let about = format!("{name} is recorded {rounds} times, and {senders} calls of it sent events");
                broken(found, Guarantee::G4, Some(saga), about);
            }
        }
    }
}

/// The events of one ordering key arrive first in the order in which their steps were recorded.
fn order(book: &Book<'_>, saga: usize, first: &BTreeMap<EventRef, (usize, &str)>, found: &mut Vec<Violation>) {
    let of = &book.sagas[saga];
    let senders: BTreeSet<u64> = first.keys().map(|(call, _)| *call).collect();
    let arrived = first.iter().filter_map(|((number, nth), (at, key))| {
        let call = book.calls.get(number).filter(|call| call.saga == saga)?;
        // A step that was undone twice has two records: the first of its calls that told something belongs to the first.
        let earlier = book.calls_of(saga, call.step, call.op).take_while(|other| other.number != *number);
        let round = earlier.filter(|other| senders.contains(&other.number)).count();
        let records = of.end.records.iter().filter(|record| record.outcome == Recorded::Done && !record.is_late);
        let record = records.filter(|record| (record.step, record.op) == (call.step, call.op)).nth(round)?;
        // What another service records has an order of its own, and so has a saga that is a step.
        let host = of.host(call.step).map(|_| call.step).or(of.is_sub(call.step).then_some(u8::MAX));
        Some((*key, record.position, *nth, *at, host))
    });
    let mut arrived: Vec<_> = arrived.collect();
    arrived.sort_unstable();
    for pair in arrived.windows(2) {
        if pair[0].0 == pair[1].0 && pair[0].3 > pair[1].3 {
            let about = format!("of {}, position {} arrived after position {}", pair[0].0, pair[0].1, pair[1].1);
            broken(found, Guarantee::G9, Some(saga), about);
        }
    }
    let mut keys: BTreeMap<Option<u8>, BTreeSet<&str>> = BTreeMap::new();
    for event in &arrived {
        keys.entry(event.4).or_default().insert(event.0);
    }
    for keys in keys.values().filter(|keys| keys.len() > 1) {
        broken(found, Guarantee::G9, Some(saga), format!("its events have several ordering keys: {keys:?}"));
    }
}
