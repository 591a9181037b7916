//! G1, G2 and G3: effects, and what is recorded of them.

use std::collections::BTreeSet;

use super::book::{Book, SUB_STEP, broken};
use super::calls::AuditRecord;
use super::violation::{Guarantee, Violation};
use super::{Kind, Op, Recorded, Standing, What};

pub(super) fn check(book: &Book<'_>, found: &mut Vec<Violation>) {
    strangers(book, found);
    answers(book, found);
    for saga in 0..book.sagas.len() {
        for (step, plan) in book.sagas[saga].steps() {
            for op in [Op::Do, Op::Undo] {
                match book.sagas[saga].kind(step, op) {
                    Some(Kind::Transactional) => transactional(book, saga, step, op, found),
                    Some(Kind::External) => external(book, saga, step, op, found),
                    None => {}
                }
            }
            completed(book, saga, step, plan.kind, found);
        }
    }
}

/// An effect without a call of a step function comes out of nothing.
fn strangers(book: &Book<'_>, found: &mut Vec<Violation>) {
    for entry in &book.ledger.entries {
        let (What::Took { call } | What::Wrote { call } | What::Barred { call }) = &entry.what else { continue };
        if !book.calls.contains_key(call) {
            broken(found, Guarantee::G2, None, format!("call {call} took effect, and no step function made it"));
        }
    }
}

/// What was found when a step's outcome was asked for is an effect of that step of that saga.
fn answers(book: &Book<'_>, found: &mut Vec<Violation>) {
    for call in book.calls.values() {
        let Some((_, asked)) = call.found else { continue };
        if asked != call.saga || call.op != Op::Do || call.took.is_empty() {
            let about = format!("its step was found to be done by call {}, which was none of its", call.number);
            broken(found, Guarantee::G12, Some(asked), about);
        }
    }
}

fn transactional(book: &Book<'_>, saga: usize, step: u8, op: Op, found: &mut Vec<Violation>) {
    let of = &book.sagas[saga];
    let name = of.name(step, op);
    let writes: usize = book.calls_of(saga, step, op).map(|call| call.wrote.len()).sum();
    if writes > 1 {
        broken(found, Guarantee::G2, Some(saga), format!("{name} was committed {writes} times"));
    }
    let done = of.end.records.iter().filter(|record| record.step == step && record.op == op);
    let done: Vec<_> = done.filter(|record| record.outcome == Recorded::Done).collect();
    match (writes, done.len()) {
        (0, 0) | (1.., 1..) => {}
        (0, _) => broken(found, Guarantee::G1, Some(saga), format!("{name} is recorded as done, and wrote nothing")),
        (_, 0) => broken(found, Guarantee::G1, Some(saga), format!("{name} was committed without its record")),
    }
    let effect = book.effect_of(saga, step, op).map(|(_, call)| call.number);
    let recorded = done.iter().find_map(|record| record.call);
    if let (Some(effect), Some(recorded)) = (effect, recorded)
        && effect != recorded
    {
        let about = format!("{name}: call {effect} was committed, and the output of call {recorded} was recorded");
        broken(found, Guarantee::G1, Some(saga), about);
    }
}

fn external(book: &Book<'_>, saga: usize, step: u8, op: Op, found: &mut Vec<Violation>) {
    let of = &book.sagas[saga];
    let name = of.name(step, op);
    let is_exclusive = of.steps().any(|(at, plan)| at == step && plan.is_exclusive);
    if is_exclusive && op == Op::Do {
        exclusive(book, saga, step, &name, found);
    }
    let keys: BTreeSet<&str> = book.calls_of(saga, step, op).filter_map(|call| call.key).collect();
    // A second undo, after a success that came late, has a key of its own, however it ended.
    let keys_max = if op == Op::Undo { of.undos_ended(step).max(1) } else { 1 };
    if keys.len() > keys_max {
        broken(found, Guarantee::G3, Some(saga), format!("{name} was called with {} keys: {keys:?}", keys.len()));
    }
    let took: usize = book.calls_of(saga, step, op).map(|call| call.took.len()).sum();
    if took > 1 {
        broken(found, Guarantee::G3, Some(saga), format!("{name} took effect {took} times outside"));
    }
    let records = of.end.records.iter().filter(|record| record.step == step && record.op == op);
    let done: Vec<_> = records.filter(|record| record.outcome == Recorded::Done).collect();
    if op == Op::Do && done.len() > 1 {
        broken(found, Guarantee::G3, Some(saga), format!("{name} is recorded as done {} times", done.len()));
    }
    if op == Op::Do && !done.is_empty() && took == 0 {
        broken(found, Guarantee::G3, Some(saga), format!("{name} is recorded as done, and never took effect"));
    }
    for call in done.iter().filter_map(|record| record.call) {
        let is_answer = book.calls.get(&call).is_some_and(|seen| {
            (seen.saga, seen.step, seen.op) == (saga, step, op)
                && (seen.left.is_some_and(|(_, how)| how == super::Left::Done) || seen.found.is_some())
        });
        if !is_answer {
            broken(
                found,
                Guarantee::G3,
                Some(saga),
                format!("{name} is recorded with an output that it never returned"),
            );
        }
    }
}

/// Once another call of an exclusive step has begun, the one before does nothing any more.
fn exclusive(book: &Book<'_>, saga: usize, step: u8, name: &str, found: &mut Vec<Violation>) {
    let calls: Vec<_> = book.calls_of(saga, step, Op::Do).collect();
    for (before, after) in calls.iter().zip(calls.iter().skip(1)) {
        let goes_on = before.hauled.iter().copied().chain(before.left.map(|(at, _)| at)).any(|at| at > after.entered);
        if goes_on {
            let about = format!("{name}: call {} went on when call {} had begun", before.number, after.number);
            broken(found, Guarantee::G7, Some(saga), about);
        }
    }
}

/// Everything that a completed saga should have done was done; what a step read is what the other one did.
fn completed(book: &Book<'_>, saga: usize, step: u8, kind: Kind, found: &mut Vec<Violation>) {
    let of = &book.sagas[saga];
    let name = of.name(step, Op::Do);
    let is_expected = of.end.standing == Standing::Completed && !of.is_forced() && !of.is_skipped(step, Op::Do);
    let is_expected = is_expected && !of.is_left_out(step) && !of.is_forced_at_its_host(step);
    if is_expected && book.effect_of(saga, step, Op::Do).is_none() {
        let guarantee = if kind == Kind::Transactional { Guarantee::G1 } else { Guarantee::G3 };
        broken(found, guarantee, Some(saga), format!("the saga is completed, and {name} never took effect"));
    }
    let reads = of.variant().and_then(|variant| variant.steps[usize::from(step)].reads);
    let in_arm = |earlier: u8| of.variant().is_some_and(|variant| !variant.steps[usize::from(earlier)].arms.is_empty());
    let reads_arm = reads.is_some_and(in_arm);
    for call in book.calls_of(saga, step, Op::Do) {
        let giver = reads.map_or(saga, |earlier| book.doer_of(saga, earlier));
        let expected = reads.and_then(|earlier| book.effect_of(giver, earlier, Op::Do)).map(|(_, call)| call.number);
        // What was rolled back may have been started with another variant, or behind a choice that was then made anew.
        if (of.accepted != Some(call.variant) || reads_arm) && call.was_rolled_back() {
            continue;
        }
        let is_skipped = reads.is_some_and(|earlier| {
            // An operator who skipped the saga that is a step gave its result.
            let is_result = of.is_sub(earlier) && !of.is_sub(step);
            let goes_past = |act: &AuditRecord| act.at < call.entered && act.goes_past(SUB_STEP, Op::Do);
            book.sagas[giver].is_skipped(earlier, Op::Do) || (is_result && book.sagas[giver].acts.iter().any(goes_past))
        });
        // Within one transaction it reads what is about to be committed, or to be rolled back with the reader.
        let is_of_same = reads.is_some_and(|earlier| {
            book.ran_together(saga, earlier, Op::Do, call).any(|earlier| Some(earlier.number) == call.reads)
        });
        if call.reads != expected && !is_skipped && !is_of_same {
            let about = format!("{name} was given the output of call {:?} instead of {expected:?}", call.reads);
            broken(found, Guarantee::G3, Some(saga), about);
        }
    }
}
