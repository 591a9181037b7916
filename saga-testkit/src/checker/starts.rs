//! G6 and G7: one key, one saga, one decision.

use super::book::{Book, broken};
use super::violation::{Guarantee, Violation};
use super::{Answer, Kind, Op, Standing, What};

pub(super) fn check(book: &Book<'_>, found: &mut Vec<Violation>) {
    for saga in 0..book.sagas.len() {
        answers(book, saga, found);
        payloads(book, saga, found);
        decisions(book, saga, found);
        fences(book, saga, found);
        operators(book, saga, found);
    }
}

fn answers(book: &Book<'_>, saga: usize, found: &mut Vec<Violation>) {
    let of = &book.sagas[saga];
    let mut news = 0;
    for (_, variant, number) in &of.starts {
        let answers = book.ledger.entries.iter().filter_map(|entry| match &entry.what {
            What::StartAnswered { call, answer } if call == number => Some(*answer),
            _ => None,
        });
        for answer in answers {
            match answer {
                Answer::Started { .. } if of.end.standing == Standing::Absent => {
                    broken(found, Guarantee::G6, Some(saga), format!("start {number} returned, and there is no saga"));
                }
                Answer::Started { .. } if of.accepted != Some(*variant) => {
                    let about = format!("start {number} of variant {variant} was accepted beside {:?}", of.accepted);
                    broken(found, Guarantee::G6, Some(saga), about);
                }
                Answer::Started { is_new } => news += usize::from(is_new == Some(true)),
                Answer::Refused if of.accepted == Some(*variant) || of.accepted.is_none() => {
                    let about = format!("start {number} was refused, and the key is its own");
                    broken(found, Guarantee::G6, Some(saga), about);
                }
                Answer::Refused | Answer::Failed => {}
            }
        }
    }
    if news > 1 {
        broken(found, Guarantee::G6, Some(saga), format!("{news} starts were told that they made the saga"));
    }
}

/// Whatever was refused changes nothing. What ran in the transaction of a start that did not commit did not happen.
fn payloads(book: &Book<'_>, saga: usize, found: &mut Vec<Violation>) {
    let of = &book.sagas[saga];
    let calls = of.calls.iter().filter_map(|number| book.calls.get(number));
    if let Some(call) = calls.into_iter().find(|call| of.accepted != Some(call.variant) && !call.was_rolled_back()) {
        let about = format!("call {} ran with variant {}, and {:?} is stored", call.number, call.variant, of.accepted);
        broken(found, Guarantee::G6, Some(saga), about);
    }
    if of.starts.is_empty() && of.restarts.is_empty() && of.end.standing != Standing::Absent {
        broken(found, Guarantee::G6, Some(saga), "no client started this saga");
    }
}

/// What a client was told of the end stays true. A stuck saga may still end.
fn decisions(book: &Book<'_>, saga: usize, found: &mut Vec<Violation>) {
    let of = &book.sagas[saga];
    let is_end = |standing: &Standing| matches!(standing, Standing::Completed | Standing::Compensated);
    let told = of.outcomes.iter().map(|(_, standing)| *standing).filter(is_end);
    let mut told: Vec<_> = told.chain([of.end.standing].into_iter().filter(is_end)).collect();
    let is_ended = !told.is_empty();
    told.dedup();
    if told.len() > 1 && !of.is_forced() {
        broken(found, Guarantee::G7, Some(saga), format!("the decision changed: {told:?}"));
    }
    if is_ended && !is_end(&of.end.standing) {
        broken(
            found,
            Guarantee::G7,
            Some(saga),
            format!("a client was told {told:?}, and it is {:?}", of.end.standing),
        );
    }
}

/// Of several acts on what was seen at one revision, one is done, and that once, however often its plan is carried out.
fn operators(book: &Book<'_>, saga: usize, found: &mut Vec<Violation>) {
    if let Some(act) = book.sagas[saga].acts.iter().find(|act| act.times > 1) {
        broken(found, Guarantee::G7, Some(saga), format!("act {} was done {} times", act.call, act.times));
    }
    let done = book.sagas[saga].acts.iter().filter(|act| act.is_done == Some(true));
    let mut revisions: Vec<(u8, u64)> = done.map(|act| (act.row, act.revision)).collect();
    revisions.sort_unstable();
    let twice = revisions.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0].1);
    if let Some(twice) = twice {
        broken(found, Guarantee::G7, Some(saga), format!("two acts were done on its revision {twice}"));
    }
}

/// A transaction of an older owner does not commit once a younger owner has begun.
fn fences(book: &Book<'_>, saga: usize, found: &mut Vec<Violation>) {
    let of = &book.sagas[saga];
    for (step, _) in of.steps() {
        for op in [Op::Do, Op::Undo] {
            if of.kind(step, op) != Some(Kind::Transactional) {
                continue;
            }
            for call in book.calls_of(saga, step, op) {
                let Some(wrote) = call.wrote.first() else { continue };
                let mut younger = book.calls_of(saga, step, op).filter(|other| other.fence > call.fence);
                if younger.any(|other| other.entered < *wrote) {
                    let about =
                        format!("{}: the epoch {} committed beside a younger one", of.name(step, op), call.fence);
                    broken(found, Guarantee::G7, Some(saga), about);
                }
            }
        }
    }
}
