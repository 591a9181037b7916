//! G5: what a saga may still undo, no other one uses; calls under one lock follow each other.

use std::collections::BTreeMap;

use super::book::{Book, SagaBook, broken};
use super::calls::Call;
use super::plan::Op;
use super::violation::{Guarantee, Violation};
use super::{Left, RecordSeen, Recorded, StepPlan};

pub(super) fn check(book: &Book<'_>, found: &mut Vec<Violation>) {
    held(book, found);
    called(book, found);
}

/// Entities of a tenant, by their numbers.
type Entity<'a> = (&'a str, u8);

/// From the first step behind its semantic lock to its last undo a saga is alone with the entity. What is reported when the saga
/// has ended, by a process that was paused past its lease, is undone without its lock.
fn held(book: &Book<'_>, found: &mut Vec<Violation>) {
    let mut spans: BTreeMap<Entity<'_>, Vec<(usize, usize, usize)>> = BTreeMap::new();
    for (saga, of) in book.sagas.iter().enumerate().filter(|(_, of)| is_left_alone(of) && !is_undone_late(of)) {
        for (entity, first, last) in spans_of(book, saga) {
            spans.entry((&of.plan.tenant, entity)).or_default().push((first, last, saga));
        }
    }
    for ((_, entity), mut spans) in spans {
        spans.sort_unstable();
        for pair in spans.windows(2) {
            let [(_, last, before), (first, _, saga)] = pair else { continue };
            if first < last {
                let about = format!("it used the account {entity} before saga #{before} was done with it");
                broken(found, Guarantee::G5, Some(*saga), about);
            }
        }
    }
}

/// Whether a call was reported late: as done, or as one that may have been, so that its step is undone once more.
fn is_undone_late(of: &SagaBook<'_>) -> bool {
    let records = &of.end.records;
    let is_undone = |record: &&RecordSeen| record.op == Op::Undo && record.outcome == Recorded::Done;
    let undone = |step| records.iter().filter(is_undone).filter(|record| record.step == step).count();
    records.iter().any(|record| record.is_late || undone(record.step) > 1)
}

/// Where a saga used each entity that it has with a semantic lock for the first and for the last time.
fn spans_of(book: &Book<'_>, saga: usize) -> impl Iterator<Item = (u8, usize, usize)> {
    let mut spans: BTreeMap<u8, (usize, usize)> = BTreeMap::new();
    for (step, plan) in book.sagas[saga].steps() {
        let calls = [Op::Do, Op::Undo].into_iter().flat_map(|op| book.calls_of(saga, step, op));
        let places: Vec<usize> = calls.flat_map(places).collect();
        let (Some(first), Some(last)) = (places.iter().min(), places.iter().max()) else { continue };
        for entity in &plan.held {
            let span = spans.entry(*entity).or_insert((*first, *last));
            *span = (span.0.min(*first), span.1.max(*last));
        }
    }
    spans.into_iter().map(|(entity, (first, last))| (entity, first, last))
}

/// Where a call uses what its saga has: outside from its beginning on, in a transaction when that is committed.
fn places(call: &Call<'_>) -> Vec<usize> {
    if call.transaction.is_some() { call.wrote.clone() } else { vec![call.entered] }
}

/// While a call outside is under way, and while its outcome is unknown, no other saga calls for the entity that it locks.
fn called(book: &Book<'_>, found: &mut Vec<Violation>) {
    let mut calls: BTreeMap<Entity<'_>, Vec<&Call<'_>>> = BTreeMap::new();
    for call in book.calls.values().filter(|call| call.transaction.is_none()) {
        let of = &book.sagas[call.saga];
        let Some(entity) = plan_of(of, call.step).and_then(|plan| plan.locks).filter(|_| is_left_alone(of)) else {
            continue;
        };
        calls.entry((&of.plan.tenant, entity)).or_default().push(call);
    }
    for ((_, entity), mut calls) in calls {
        calls.sort_unstable_by_key(|call| call.entered);
        for (at, call) in calls.iter().enumerate() {
            let end = end_of(book, call, &calls[at + 1..]);
            let others = calls[at + 1..].iter().take_while(|other| other.entered < end);
            for other in others.filter(|other| (other.saga, other.step) != (call.saga, call.step)) {
                let about = format!(
                    "call {} was made for the account {entity} during call {} of saga #{}",
                    other.number, call.number, call.saga
                );
                broken(found, Guarantee::G5, Some(other.saga), about);
            }
        }
    }
}

/// Where it is known what became of a call: when it, or a later one of the step, has an answer. Without one it is the beginning
/// of the last call of the step. A saga that compensates before that has decided without an answer; so has one that records the
/// answer as late.
fn end_of(book: &Book<'_>, call: &Call<'_>, later: &[&Call<'_>]) -> usize {
    let again = || later.iter().filter(|other| (other.saga, other.step, other.op) == (call.saga, call.step, call.op));
    let answered = again().filter_map(|other| answer_of(other, false));
    let known = answer_of(call, true).into_iter().chain(answered).min();
    let last = || again().map(|other| other.entered).max().or(call.left.map(|(at, _)| at));
    let end = known.or_else(last).unwrap_or(call.entered);
    let mut undone = later.iter().filter(|other| other.saga == call.saga && other.op == Op::Undo);
    let records = &book.sagas[call.saga].end.records;
    let is_late = records.iter().any(|record| record.is_late && record.call == Some(call.number));
    // The undo of a step whose outcome is unknown may wait for the lock longer than the call takes.
    let is_unknown =
        |record: &RecordSeen| (record.step, record.op, record.outcome) == (call.step, Op::Do, Recorded::Unknown);
    let is_decided_without =
        call.op == Op::Do && (is_late || records.iter().any(is_unknown) || undone.any(|undo| undo.entered < end));
    if is_decided_without { call.entered } else { end }
}

/// Where the call had a definite answer. That it was not sent says nothing of the calls before it.
fn answer_of(call: &Call<'_>, or_was_not_sent: bool) -> Option<usize> {
    let (at, how) = call.left?;
    let is_definite = matches!(how, Left::Done | Left::Rejected) || (or_was_not_sent && how == Left::NotSent);
    is_definite.then_some(at)
}

/// Whether no operator has a hand in the saga, who may end it or let it wait.
fn is_left_alone(of: &SagaBook<'_>) -> bool {
    of.acts().next().is_none() && of.stuck.is_empty()
}

fn plan_of<'a>(of: &SagaBook<'a>, step: u8) -> Option<&'a StepPlan> {
    of.variant()?.steps.get(usize::from(step))
}
