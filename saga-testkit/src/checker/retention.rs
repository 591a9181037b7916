//! G13: what may still be acted on is never purged, and a purge takes a saga whole or not at all.

use std::collections::BTreeSet;

use super::book::{Book, broken};
use super::calls::Call;
use super::violation::{Guarantee, Violation};
use super::{Age, Standing, What};

/// A row that was purged, as the ledger has it.
#[derive(Debug, Clone, Copy)]
struct Purge {
    at: usize,
    service: u8,
    saga: usize,
    row: u8,
    revision: u64,
    age: Age,
    was_tombstone: bool,
    standing: Standing,
    is_whole: bool,
}

impl Book<'_> {
    /// Whether the key of one saga is that of another one before it.
    pub(super) fn is_reborn(&self, saga: usize, of: usize) -> bool {
        self.sagas[saga].plan.reborn_of == Some(of as u32)
    }
}

pub(super) fn check(book: &Book<'_>, found: &mut Vec<Violation>) {
    let purges: Vec<Purge> = purges(book).collect();
    for purge in &purges {
        let mut note = |about: String| broken(found, Guarantee::G13, Some(purge.saga), about);
        let row = name(book, purge);
        if !matches!(purge.standing, Standing::Completed | Standing::Compensated) {
            note(format!("{row} was purged, and it was {:?}", purge.standing));
        }
        if !purge.is_whole {
            note(format!("{row} was purged, and a part of it is left"));
        }
        archived(book, purge, &row, &mut note);
        exempted(book, purge, &row, &mut note);
        acted_on(book, purge, &row, &mut note);
    }
    for saga in 0..book.sagas.len() {
        reborn(book, saga, &purges, found);
    }
    if book.ledger.rest.hosted_left > 0 {
        let left = book.ledger.rest.hosted_left;
        broken(found, Guarantee::G13, None, format!("{left} hosted steps are kept though their sagas are closed"));
    }
}

fn purges(book: &Book<'_>) -> impl Iterator<Item = Purge> {
    let known = book.sagas.len();
    book.ledger.entries.iter().enumerate().filter_map(move |(at, entry)| match entry.what {
        What::Purged { service, saga, row, revision, age, was_tombstone, standing, is_whole } => {
            let saga = saga as usize;
            (saga < known).then_some(Purge { at, service, saga, row, revision, age, was_tombstone, standing, is_whole })
        }
        _ => None,
    })
}

/// What is purged was archived before, as it was. Of a tombstone there is nothing to archive.
fn archived(book: &Book<'_>, purge: &Purge, row: &str, note: &mut impl FnMut(String)) {
    if !book.ledger.is_archived || purge.was_tombstone {
        return;
    }
    let is_it = |what: &What| match what {
        What::Archived { service, saga, row, revision } => {
            (*service, *saga as usize, *row, *revision) == (purge.service, purge.saga, purge.row, purge.revision)
        }
        _ => false,
    };
    if !book.ledger.entries[..purge.at].iter().any(|entry| is_it(&entry.what)) {
        note(format!("{row} was purged at revision {}, and was not archived so", purge.revision));
    }
}

/// A saga that an operator exempted is kept.
fn exempted(book: &Book<'_>, purge: &Purge, row: &str, note: &mut impl FnMut(String)) {
    if purge.service > 0 {
        return;
    }
    let mut is_exempt = false;
    for entry in &book.ledger.entries[..purge.at] {
        match entry.what {
            What::Exempted { saga } if saga as usize == purge.saga => is_exempt = true,
            What::Unexempted { saga } if saga as usize == purge.saga => is_exempt = false,
            _ => {}
        }
    }
    if is_exempt {
        note(format!("{row} was purged, and an operator had exempted it"));
    }
}

/// Nothing takes effect for a saga that was purged, and a host begins nothing of which it has purged the record: no message
/// and no claim brings it back.
fn acted_on(book: &Book<'_>, purge: &Purge, row: &str, note: &mut impl FnMut(String)) {
    let of = &book.sagas[purge.saga];
    let is_of_row = |call: &&Call<'_>| match (purge.service, of.host(call.step)) {
        (0, host) => host.is_none(),
        (_, host) => host.is_some() && call.step + 1 == purge.row,
    };
    let calls = of.calls.iter().filter_map(|number| book.calls.get(number)).filter(is_of_row);
    for call in calls {
        let name = of.name(call.step, call.op);
        if purge.service > 0 && call.entered > purge.at {
            note(format!("{name} was called by call {} when the record of {row} was purged", call.number));
        } else if call.effect().is_some_and(|at| at > purge.at) {
            note(format!("{name} took effect by call {} when {row} was purged", call.number));
        }
    }
}

/// Two sagas have one key only if the first was deleted before a client started the second. Then nothing of the first takes effect
/// any more, and its hosts have forgotten it.
fn reborn(book: &Book<'_>, saga: usize, purges: &[Purge], found: &mut Vec<Violation>) {
    let of = &book.sagas[saga];
    let Some(before) = of.plan.reborn_of.map(|before| before as usize) else { return };
    let mut note = |about: String| broken(found, Guarantee::G13, Some(saga), about);
    let is_end = |purge: &&Purge| (purge.service, purge.saga, purge.row, purge.age) == (0, before, 0, Age::Deleted);
    let deleted = purges.iter().find(is_end).map(|purge| purge.at);
    let started = of.starts.iter().map(|(at, ..)| *at).find(|at| deleted.is_some_and(|deleted| *at > deleted));
    let Some(started) = started else {
        if !of.calls.is_empty() {
            note("it runs, and the saga that had its key was not deleted before a client started it".to_owned());
        }
        return;
    };
    let calls = |saga: usize| book.sagas[saga].calls.iter().filter_map(|number| book.calls.get(number));
    if let Some(call) = calls(saga).find(|call| call.entered < started) {
        note(format!("call {} began before a client started it", call.number));
    }
    if let Some(call) = calls(before).find(|call| call.effect().is_some_and(|at| at > started)) {
        note(format!("call {} of the saga that had its key took effect behind its start", call.number));
    }
    let kept: BTreeSet<u8> = purges
        .iter()
        .filter(|purge| purge.service > 0 && purge.saga == before && purge.at > started)
        .map(|purge| purge.row)
        .collect();
    for row in kept {
        let name = of.plan.key.as_str();
        note(format!("row {row} of the saga that had the key {name} was still kept by a host when it was started"));
    }
}

fn name(book: &Book<'_>, purge: &Purge) -> String {
    let key = &book.sagas[purge.saga].plan.key;
    match (purge.service, purge.row) {
        (0, 0) => format!("the saga {key}"),
        (0, _) => format!("the sub-saga of {key}"),
        (service, row) => format!("step {} of {key} in service {service}", row - 1),
    }
}
