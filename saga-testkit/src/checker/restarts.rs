//! G2, G3, G5 and G6 where a saga is started instead of another one: what it takes over stands, belongs to the one that did
//! it, and is neither done again nor undone.

use std::collections::BTreeSet;

use super::book::{Book, broken};
use super::calls::Restarted;
use super::violation::{Guarantee, Violation};
use super::{Answer, ChosenSeen, Kind, Op, Standing, What};

impl Book<'_> {
    pub(super) fn enter_restart(&mut self, at: usize, what: &What) {
        if let What::RestartCalled { call, saga, of, from } = what {
            let (of, from) = (*of as usize, from.clone());
            self.sagas[*saga as usize].restarts.push(Restarted { at, call: *call, of, from, answer: None });
        }
    }

    /// Whether it was such a call that was answered.
    pub(super) fn answer_restart(&mut self, at: usize, call: u64, answer: Answer) -> bool {
        let mut restarts = self.sagas.iter_mut().flat_map(|saga| &mut saga.restarts);
        let asked = restarts.find(|restart| restart.call == call);
        asked.map(|restart| restart.answer = Some((at, answer))).is_some()
    }

    /// Finds out what was taken over: all that does not come behind the steps that the saga was to begin with.
    pub(super) fn take_over(&mut self) {
        for saga in 0..self.sagas.len() {
            let Some(from) = self.accepted_restart(saga).map(|restart| restart.from.clone()) else { continue };
            let of = &self.sagas[saga];
            let is_run = |step: u8| from.iter().any(|from| *from == step || of.is_behind(step, *from));
            self.sagas[saga].taken = of.steps().map(|(step, _)| step).filter(|step| !is_run(*step)).collect();
        }
    }

    /// The call by which a saga is there instead of another one: one that was told so, else the last one with an unknown answer.
    pub(super) fn accepted_restart(&self, saga: usize) -> Option<&Restarted> {
        let mut restarts = self.sagas[saga].restarts.iter().filter(|restart| restart.of != saga);
        let told = restarts.clone().find(|restart| restart.told().is_some());
        told.or_else(|| restarts.rfind(|restart| !restart.is_refused()))
    }

    /// The saga whose step that is: the saga itself, or the one that it took it over from.
    pub(super) fn doer_of(&self, saga: usize, step: u8) -> usize {
        let mut doer = saga;
        // No saga is a restart of a later one, so that there is an end.
        for _ in 0..self.sagas.len() {
            match self.accepted_restart(doer).filter(|_| self.sagas[doer].taken.contains(&step)) {
                Some(restart) => doer = restart.of,
                None => break,
            }
        }
        doer
    }
}

pub(super) fn check(book: &Book<'_>, found: &mut Vec<Violation>) {
    for saga in 0..book.sagas.len() {
        answers(book, saga, found);
        refusals(book, saga, found);
        taken(book, saga, found);
        choices(book, saga, found);
    }
}

/// One key is one saga: the same wish has the same answer, and another one is refused.
fn answers(book: &Book<'_>, saga: usize, found: &mut Vec<Violation>) {
    let of = &book.sagas[saga];
    let mut note = |about: String| broken(found, Guarantee::G6, Some(saga), about);
    let told = of.restarts.iter().filter_map(Restarted::told);
    let news = told.filter(|(_, is_new)| *is_new == Some(true)).count();
    if news > 1 {
        note(format!("{news} restarts were told that they made the saga"));
    }
    if let Some(own) = of.restarts.iter().find(|restart| restart.of == saga && restart.told().is_some()) {
        note(format!("restart {} put the saga in its own place", own.call));
    }
    let Some(accepted) = book.accepted_restart(saga) else { return };
    for restart in &of.restarts {
        let (call, is_like) = (restart.call, restart.is_like(accepted));
        match restart.told() {
            Some(_) if of.end.standing == Standing::Absent => {
                note(format!("restart {call} returned, and there is no saga"));
            }
            Some(_) if !is_like => note(format!("restart {call} was accepted beside restart {}", accepted.call)),
            _ => {}
        }
        let is_known = accepted.told().is_some_and(|(told, _)| told < restart.at);
        if restart.is_refused() && is_like && is_known {
            note(format!("restart {call} was refused, and restart {} made just that saga", accepted.call));
        }
    }
    let is_there = of.end.standing != Standing::Absent;
    let old = &book.sagas[accepted.of];
    if is_there && of.accepted != old.accepted {
        note(format!("its payload is variant {:?}, and that of the saga before it is {:?}", of.accepted, old.accepted));
    }
    let first = of.restarts.iter().map(|restart| restart.at).min().unwrap_or_default();
    let mut calls = of.calls.iter().filter_map(|number| book.calls.get(number));
    if let Some(call) = calls.find(|call| call.entered < first) {
        note(format!("call {} began before a client started the saga", call.number));
    }
}

/// Where all that is to be taken over was done, and the key is free, nothing stands in the way.
fn refusals(book: &Book<'_>, saga: usize, found: &mut Vec<Violation>) {
    let of = &book.sagas[saga];
    for restart in of.restarts.iter().filter(|restart| restart.of != saga && restart.is_refused()) {
        let old = &book.sagas[restart.of];
        let has_ended = |(at, told): &(usize, Standing)| *at < restart.at && *told == Standing::Completed;
        let is_plain = old.outcomes.iter().any(has_ended) && old.acts().next().is_none() && old.restarts.is_empty();
        let is_taken = of.restarts.iter().any(|other| other.at < restart.at && !other.is_refused());
        let is_passed_by = |step: &u8| old.is_passed_by(*step);
        // A semantic lock is not taken over: what begins behind one is refused.
        let has_lock = !restart.from.is_empty() && old.steps().any(|(_, plan)| !plan.held.is_empty());
        if is_plain && !is_taken && !has_lock && !restart.from.iter().any(is_passed_by) {
            let about =
                format!("restart {} was refused, its key is free, and #{} is completed", restart.call, restart.of);
            broken(found, Guarantee::G6, Some(saga), about);
        }
    }
}

/// What was taken over is an effect of the other saga that stands, and nothing but its output is used.
fn taken(book: &Book<'_>, saga: usize, found: &mut Vec<Violation>) {
    let of = &book.sagas[saga];
    let Some(accepted) = book.accepted_restart(saga).filter(|_| of.end.standing != Standing::Absent) else { return };
    for (step, plan) in of.steps().filter(|(step, _)| of.taken.contains(step)) {
        let again = match plan.kind {
            Kind::Transactional => Guarantee::G2,
            Kind::External => Guarantee::G3,
        };
        for (op, guarantee, what) in [(Op::Do, again, "done again"), (Op::Undo, Guarantee::G5, "undone")] {
            if let Some(call) = book.calls_of(saga, step, op).next() {
                let about = format!("{} was taken over, and {what} in call {}", of.name(step, Op::Do), call.number);
                broken(found, guarantee, Some(saga), about);
            }
        }
        let doer = book.doer_of(saga, step);
        let of = &book.sagas[doer];
        let name = of.name(step, Op::Do);
        // A person may say that it counts as done.
        if of.is_passed_by(step) || of.is_skipped(step, Op::Do) || of.is_forced() || of.is_forced_at_its_host(step) {
            continue;
        }
        let known = accepted.told().map_or(usize::MAX, |(at, _)| at);
        if book.effect_of(doer, step, Op::Do).is_none_or(|(at, _)| at > known) {
            broken(found, Guarantee::G5, Some(saga), format!("{name} was taken over, and had not taken effect"));
        }
        if let Some((_, call)) = book.effect_of(doer, step, Op::Undo) {
            let about = format!("{name} was taken over, and its own saga undid it by call {}", call.number);
            broken(found, Guarantee::G5, Some(saga), about);
        }
    }
}

/// A choice of which nothing is to run again is taken over as it was made.
fn choices(book: &Book<'_>, saga: usize, found: &mut Vec<Violation>) {
    let of = &book.sagas[saga];
    let Some(accepted) = book.accepted_restart(saga).filter(|_| of.end.standing != Standing::Absent) else { return };
    let arms = |chosen: &ChosenSeen| -> BTreeSet<u8> {
        let within = of.steps().filter(|(_, plan)| plan.arms.iter().any(|arm| arm.choice == chosen.choice));
        within.map(|(step, _)| step).collect()
    };
    let before = &book.sagas[accepted.of].end.chosen;
    for chosen in before.iter().filter(|chosen| arms(chosen).iter().all(|step| of.taken.contains(step))) {
        if !of.end.chosen.contains(chosen) {
            let about = format!("{} was taken over, and is not as it was made: {:?}", chosen.choice, of.end.chosen);
            broken(found, Guarantee::G5, Some(saga), about);
        }
    }
}
