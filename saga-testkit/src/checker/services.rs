//! G3, G4 and G5 across services: what is asked for and answered, and what the saga was told of what others did.

use std::collections::BTreeMap;

use super::book::{Book, broken};
use super::violation::{Guarantee, Violation};
use super::{Op, Recorded, Sent, Standing, What};

/// What a message is about.
type About<'a> = (Sent, u32, u8, Option<&'a str>);

pub(super) fn check(book: &Book<'_>, found: &mut Vec<Violation>) {
    messages(book, found);
    for saga in 0..book.sagas.len() {
        told(book, saga, found);
    }
}

/// A message always asks for the same, a step is always asked for by the same command, its undo brings the input that the
/// command brought, and a reply answers what was asked before, of just that step.
fn messages(book: &Book<'_>, found: &mut Vec<Violation>) {
    let mut known: BTreeMap<&str, About<'_>> = BTreeMap::new();
    let mut commands: BTreeMap<(u32, u8), &str> = BTreeMap::new();
    let mut inputs: BTreeMap<(u32, u8), &str> = BTreeMap::new();
    for entry in &book.ledger.entries {
        let What::Sent { message, kind, saga, step, asked, input } = &entry.what else { continue };
        let about = (*kind, *saga, *step, asked.as_deref());
        let of = (*saga as usize) < book.sagas.len();
        let of = of.then_some(*saga as usize);
        if of.is_none() {
            broken(found, Guarantee::G4, None, format!("the message {message} is of no saga"));
        }
        if *known.entry(message).or_insert(about) != about {
            broken(found, Guarantee::G4, of, format!("the id {message} is that of two messages"));
        }
        if let (Some(of), Some(input)) = (of, input.as_deref())
            && *inputs.entry((*saga, *step)).or_insert(input) != input
        {
            let about =
                format!("step {step} was asked for with one input, and is done or undone with another: {input}");
            broken(found, Guarantee::G5, Some(of), about);
        }
        let first = match kind {
            Sent::Command => *commands.entry((*saga, *step)).or_insert(message),
            _ => message,
        };
        if first != message {
            broken(found, Guarantee::G3, of, format!("step {step} was asked for by {first}, and by {message} too"));
        }
        let is_answer = |asked: &str| {
            let question = known.get(asked);
            question.is_some_and(|(kind, of, what, _)| *kind != Sent::Reply && (of, what) == (saga, step))
        };
        if *kind == Sent::Reply && !asked.as_deref().is_some_and(is_answer) {
            broken(found, Guarantee::G4, of, format!("the reply {message} of step {step} answers nothing"));
        }
    }
}

/// What the saga was told is what happened.
fn told(book: &Book<'_>, saga: usize, found: &mut Vec<Violation>) {
    let of = &book.sagas[saga];
    for told in &of.end.told {
        let name = of.name(told.step, told.op);
        // An operator may say that a step was done which no host did.
        let is_forced = of.is_forced() || of.is_forced_at_its_host(told.step);
        if is_forced || of.is_skipped(told.step, told.op) || told.op == Op::Undo {
            continue;
        }
        let mut records = of.end.records.iter().filter(|record| (record.step, record.op) == (told.step, told.op));
        let stands = book.effect_of(saga, told.step, Op::Do).is_some()
            && book.effect_of(saga, told.step, Op::Undo).is_none()
            && !of.is_skipped(told.step, Op::Undo);
        match told.outcome {
            Recorded::Done if !records.any(|record| record.outcome == Recorded::Done && record.call == told.call) => {
                let about = format!("{name}: the saga was told an output that its host has not recorded");
                broken(found, Guarantee::G3, Some(saga), about);
            }
            Recorded::NotDone if stands => {
                let about = format!("{name}: the saga was told that it did not happen, and it stands");
                broken(found, Guarantee::G5, Some(saga), about);
            }
            _ => {}
        }
    }
    if of.end.standing != Standing::Completed || of.is_forced() {
        return;
    }
    let is_passed = |step: u8| of.is_skipped(step, Op::Do) || of.is_forced_at_its_host(step);
    let must_run = |step: u8| !is_passed(step) && !of.is_left_out(step);
    for (step, plan) in of.steps().filter(|(step, plan)| plan.host.is_some() && must_run(*step)) {
        let is_told =
            of.end.told.iter().any(|told| (told.step, told.op, told.outcome) == (step, Op::Do, Recorded::Done));
        if !is_told {
            let about = format!("the saga is completed without a reply that {} was done", plan.name);
            broken(found, Guarantee::G3, Some(saga), about);
        }
    }
}
