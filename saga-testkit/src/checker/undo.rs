//! G5: every saga ends, and exactly what took effect or may have is undone, in reverse order.

use super::book::{Book, broken};
use super::calls::{AuditRecord, Call};
use super::violation::{Guarantee, Violation};
use super::{Kind, Left, Op, RecordSeen, Recorded, Standing, StepPlan};

pub(super) fn check(book: &Book<'_>, found: &mut Vec<Violation>) {
    for saga in 0..book.sagas.len() {
        let mut note = |about: String| broken(found, Guarantee::G5, Some(saga), about);
        forward(book, saga, &mut note);
        ended(book, saga, &mut note);
        cancelled(book, saga, &mut note);
        for (step, plan) in book.sagas[saga].steps() {
            justified(book, saga, step, plan, &mut note);
            late(book, saga, step, plan, &mut note);
            order(book, saga, step, &mut note);
        }
    }
}

/// The steps are done in their order: each behind all that it comes after.
fn forward(book: &Book<'_>, saga: usize, note: &mut impl FnMut(String)) {
    let of = &book.sagas[saga];
    // A step that never took effect stands at the end of time: nothing behind it may have.
    let effect = |step: u8| book.effect_of(saga, step, Op::Do).map_or(usize::MAX, |(at, _)| at);
    // A person who ends the saga that is a step goes past what it had not done.
    let is_ended = |step: u8| of.is_sub(step) && (of.is_forced() || of.is_forced_at_its_host(step));
    let must_run = |step: u8| !of.is_skipped(step, Op::Do) && !of.is_left_out(step) && !is_ended(step);
    let steps: Vec<(u8, usize)> =
        of.steps().filter(|(step, _)| must_run(*step)).map(|(step, _)| (step, effect(step))).collect();
    for (step, at) in steps.iter().filter(|(_, at)| *at < usize::MAX) {
        let too_late = |(earlier, earlier_at): &&(u8, usize)| earlier_at > at && of.is_behind(*step, *earlier);
        if let Some((earlier, _)) = steps.iter().rev().find(too_late) {
            note(format!("{} took effect before {}", of.name(*step, Op::Do), of.name(*earlier, Op::Do)));
        }
    }
}

/// What a completed saga did stands; what a compensated saga did is gone; and there was a reason.
fn ended(book: &Book<'_>, saga: usize, note: &mut impl FnMut(String)) {
    let of = &book.sagas[saga];
    let told = of.outcomes.last().map(|(_, standing)| *standing);
    if of.accepted.is_some() && matches!(of.end.standing, Standing::Unfinished | Standing::Stuck) {
        note(format!("the saga has not ended: it is {:?}, and the last client was told {told:?}", of.end.standing));
    }
    if of.is_forced() {
        return;
    }
    let calls = || of.calls.iter().filter_map(|number| book.calls.get(number));
    for (step, plan) in of.steps().filter(|(step, _)| !of.is_forced_at_its_host(*step)) {
        let done = book.effect_of(saga, step, Op::Do);
        let undone = book.effect_of(saga, step, Op::Undo);
        let name = of.name(step, Op::Do);
        match of.end.standing {
            Standing::Completed => {
                // Where a person went past a step that another service hosts, the host undoes what it may have done.
                let is_passed = plan.host.is_some() && of.is_skipped(step, Op::Do);
                if let Some(call) = book.calls_of(saga, step, Op::Undo).next().filter(|_| !is_passed) {
                    note(format!("the saga is completed, and {name} was undone by call {}", call.number));
                }
            }
            Standing::Compensated => {
                let must_undo = plan.undo.is_some() && !of.is_skipped(step, Op::Undo) && !of.is_skipped(step, Op::Do);
                if done.is_some() && plan.is_pivot {
                    note(format!("the saga is compensated, and its pivot {name} took effect"));
                } else if let (Some((_, call)), None, true) = (done, undone, must_undo) {
                    note(format!(
                        "the saga is compensated, and {name}, done by call {}, was never undone",
                        call.number
                    ));
                }
            }
            _ => {}
        }
    }
    if of.is_forced_at_a_host() {
        // What the saga was told of that step is the operator's word: it may have failed.
        return;
    }
    let is_called_off = of.plan.is_taken_back || !of.cancels.is_empty() || of.end.overdue_at.is_some();
    // A saga may wait for a semantic lock in vain.
    let takes_locks = of.steps().any(|(_, plan)| !plan.held.is_empty());
    let has_failed = is_called_off || takes_locks || calls().any(|call| !matches!(call.left, Some((_, Left::Done))));
    if of.end.standing == Standing::Compensated && !has_failed && !book.is_disturbed_before(book.ledger.entries.len()) {
        note("the saga is compensated, and no step of it failed".to_owned());
    }
    for stuck in &of.stuck {
        let has_cause = calls().any(|call| call.entered < *stuck && !matches!(call.left, Some((_, Left::Done))));
        if !has_cause && !book.is_disturbed_before(*stuck) {
            note("the saga was stuck, and no step of it had failed".to_owned());
        }
    }
}

/// A saga that was called off never completes, and nothing begins behind what ended after that.
fn cancelled(book: &Book<'_>, saga: usize, note: &mut impl FnMut(String)) {
    let of = &book.sagas[saga];
    let Some(turned) = of.compensated_from().filter(|_| !of.is_forced()) else { return };
    if of.end.standing == Standing::Completed {
        note("the saga is completed, and it was told that it compensates".to_owned());
    }
    // What stands behind a step begins when a person goes past it, wherever that step itself is by then.
    let is_passed = |before: u8| of.acts.iter().any(|act| act.at < turned && act.goes_past(before, Op::Do));
    let effects = || of.steps().filter_map(|(step, _)| Some((step, book.effect_of(saga, step, Op::Do)?.0)));
    for (later, at) in effects() {
        // A saga that is a step hears of it a little later than the one that it is a step of.
        let is_sub = |before: u8| of.is_sub(before) && of.is_sub(later);
        let is_new = |(before, ended): &(u8, usize)| {
            *ended > turned && at > *ended && of.is_behind(later, *before) && !is_sub(*before) && !is_passed(*before)
        };
        if let Some((before, _)) = effects().find(is_new) {
            let (later, before) = (of.name(later, Op::Do), of.name(before, Op::Do));
            note(format!("{later} took effect behind {before}, which ended when the saga was called off already"));
        }
    }
}

/// An undo runs only for what took effect or may have, with the output of just that.
fn justified(book: &Book<'_>, saga: usize, step: u8, plan: &StepPlan, note: &mut impl FnMut(String)) {
    let of = &book.sagas[saga];
    let name = of.name(step, Op::Undo);
    for undo in book.calls_of(saga, step, Op::Undo) {
        let done = book.effect_of(saga, step, Op::Do).filter(|(at, _)| *at < undo.entered).map(|(_, call)| call);
        // A step that was taken back while it ran may be undone in its own transaction. It runs anew there when another one of
        // its group has failed, and only what it did last stands.
        let done = done.or_else(|| book.ran_together(saga, step, Op::Do, undo).last());
        let Some(undo_plan) = &plan.undo else {
            note(format!("{name} ran, and the step has no compensation"));
            continue;
        };
        let is_justified =
            done.is_some() || (plan.kind == Kind::External && may_have_happened(book, saga, (step, plan), undo));
        if !is_justified {
            note(format!("{name} ran in call {}, and there was nothing to undo", undo.number));
        }
        match undo.reads {
            Some(reads) if done.is_none_or(|call| call.number != reads) => {
                note(format!("{name} was given the output of call {reads}, which is not what its step did"));
            }
            None if !undo_plan.takes_unknown => note(format!("{name} takes the output, and ran without one")),
            _ => {}
        }
    }
}

/// An external step that was called, and not every call of it said for certain that nothing happened.
fn may_have_happened(book: &Book<'_>, saga: usize, (step, plan): (u8, &StepPlan), undo: &Call<'_>) -> bool {
    let mut calls = book.calls_of(saga, step, Op::Do).filter(|call| call.entered < undo.entered).peekable();
    if calls.peek().is_none() {
        return may_have_been_held(book, saga, (step, plan), undo);
    }
    // An owner that vanished may have begun a call that left no trace.
    calls.any(|call| !call.is_definitely_not_done() || call.left.is_some_and(|(at, _)| at > undo.entered))
        || book.is_disturbed_before(undo.entered)
}

/// Whether an owner that vanished may have held the command of a step whose beginning left no trace.
///
/// A first attempt leaves no trace before its call, so the next owner of the command cannot tell whether the call was
/// made: it may have taken effect, and what may have is undone (G5). In a sequence the command is then given out again,
/// for nothing else starts its compensation, and the call is seen. Another branch can start it, and so can a
/// cancellation or a deadline at any step: then its command is not given out again. So the turn of the step must have come, a
/// branch beside it must have failed or may have, or the saga may have been called off, an owner may have vanished, and the undo cannot
/// know an output. At a host the same command is done to its end first. Owners that vanish as often as the step may be called
/// use it up unseen, also at a host, and then the step itself starts the compensation.
fn may_have_been_held(book: &Book<'_>, saga: usize, (step, plan): (u8, &StepPlan), undo: &Call<'_>) -> bool {
    let of = &book.sagas[saga];
    let is_passed = |before: u8| {
        of.is_skipped(before, Op::Do)
            || of.is_left_out(before)
            || book.effect_of(saga, before, Op::Do).is_some_and(|(at, _)| at < undo.entered)
    };
    let has_failed = |other: u8| {
        let mut calls = book.calls_of(saga, other, Op::Do).filter(|call| call.entered < undo.entered);
        calls.any(|call| !matches!(call.left, Some((_, Left::Done))))
    };
    // A branch that waits for a lock turns the saga round in a deadlock, or when it has waited too long, and calls nothing.
    let may_fail = |(other, plan): (u8, &StepPlan)| has_failed(other) || !plan.held.is_empty();
    let may_be_called_off = || {
        of.may_be_called_off_before(undo.entered)
            || of.steps().any(|(other, plan)| of.are_apart(step, other) && may_fail((other, plan)))
    };
    undo.reads.is_none()
        && book.is_disturbed_before(undo.entered)
        && of.steps().filter(|(before, _)| of.is_behind(step, *before)).all(|(before, _)| is_passed(before))
        && (book.disturbances_before(undo.entered) >= plan.attempts as usize
            || (of.host(step).is_none() && may_be_called_off()))
}

/// Nothing is done once it was undone or barred, once another step was undone, or once the saga has ended.
fn late(book: &Book<'_>, saga: usize, step: u8, plan: &StepPlan, note: &mut impl FnMut(String)) {
    let of = &book.sagas[saga];
    let name = of.name(step, Op::Do);
    let Some((done, call)) = book.effect_of(saga, step, Op::Do) else {
        return;
    };
    // An operator who goes past a step that may be on its way answers for it. So does one who ends it at its host, or who ends the saga
    // that is a step and has asked the host for it: the host may have the command as a dead letter, and do it later.
    let ends_asker = |act: &AuditRecord| {
        let is_end = act.ends_sub_saga_as(Standing::Completed) || act.ends_sub_saga_as(Standing::Compensated);
        is_end && act.at < call.entered
    };
    let is_asker_ended = || of.is_sub(step) && of.acts.iter().any(ends_asker);
    let is_hosted = plan.host.is_some();
    if of.is_skipped(step, Op::Do) || (is_hosted && (of.is_forced_at_its_host(step) || is_asker_ended())) {
        return;
    }
    let barred = book.calls_of(saga, step, Op::Undo).filter_map(|undo| undo.barred).min();
    if barred.is_some_and(|at| at < done) {
        note(format!("{name} took effect by call {} after it had been barred", call.number));
    }
    // So does an operator who skips the undo of a step that may or may not have happened, and one who ends the saga while a host may
    // still have the command: the host does it later, and the undos of other late successes do not wait for that.
    let is_saga_ended = || of.acts.iter().any(|act| act.ends_saga() && act.at < call.entered);
    if of.is_left_as_it_is(call) || (is_hosted && is_saga_ended()) {
        return;
    }
    let undone = of.calls.iter().filter_map(|number| book.calls.get(number)).filter(|call| call.op == Op::Undo);
    // A person may go past a step while its host undoes what it may have done: then the saga goes forward beside that.
    let undone = undone.filter(|undo| of.host(undo.step).is_none() || !of.is_skipped(undo.step, Op::Do));
    let undone = undone.filter(|undo| !may_land_beside(book, plan, call, undo));
    // A person may end the saga that is a step as completed while it undoes what it did: what stands behind it goes on.
    let is_ended = |undo: &&Call<'_>| {
        let by = |act: &AuditRecord| act.at < call.entered && act.ends_sub_saga_as(Standing::Completed);
        of.is_sub(undo.step) && !of.is_sub(step) && of.is_behind(step, undo.step) && of.acts.iter().any(by)
    };
    let undone = undone.filter(|undo| !is_ended(undo));
    if let Some(undo) = undone.filter(|undo| undo.effect().is_some_and(|at| at < done)).min_by_key(|undo| undo.entered)
    {
        note(format!("{name} took effect by call {} after {}", call.number, of.name(undo.step, Op::Undo)));
    }
    let ended = of.outcomes.iter().find(|(_, told)| matches!(told, Standing::Completed | Standing::Compensated));
    if ended.is_some_and(|(at, _)| *at < done) && !of.is_forced() {
        note(format!("{name} took effect by call {} after the saga had ended", call.number));
    }
}

/// Whether a call may take effect though a step of another branch is undone already. Positions order the undos along each
/// way through the definition only, so neither branch waits for the other; that each effect is undone in its own time is
/// seen when the saga ends.
fn may_land_beside(book: &Book<'_>, plan: &StepPlan, call: &Call<'_>, undo: &Call<'_>) -> bool {
    let of = &book.sagas[call.saga];
    if !of.are_apart(call.step, undo.step) {
        return false;
    }
    // A host undoes what may have happened before it answers that its step failed. That does not start the compensation:
    // the other branches still go forward.
    let is_of = |told: &&RecordSeen| told.step == undo.step && told.op == Op::Do && told.outcome == Recorded::Done;
    if of.host(undo.step).is_some() && !of.end.told.iter().any(|told| is_of(&told)) {
        return true;
    }
    // What a host was asked for and has not answered when the saga starts compensating may be done there until its own undo comes,
    // which the host begins behind it. Those of its siblings are sent beside that one.
    let mut decided = of.end.told.iter().filter(|told| (told.step, told.op) == (call.step, Op::Do));
    if decided.any(|told| told.outcome == Recorded::Unknown || told.is_late) {
        return true;
    }
    // A call without a known end is decided as one that may have happened, and its undo waits until it must have landed.
    // It had begun before the other undo did, for nothing begins in a saga that compensates; only an owner that was taken
    // for dead does not know of that.
    let is_lost = book.is_disturbed_before(call.entered);
    let is_unheard = !matches!(call.left, Some((_, Left::Done))) || book.is_disturbed_before(undo.entered);
    plan.kind == Kind::External && (is_lost || (is_unheard && call.entered < undo.entered))
}

/// The undo of a step begins only when those behind it are undone: their undos have committed, or ended well before in
/// the transaction that it begins in.
fn order(book: &Book<'_>, saga: usize, step: u8, note: &mut impl FnMut(String)) {
    let of = &book.sagas[saga];
    // Where a person went past a step that another service hosts, the host undoes what it may have done, in its own time.
    let is_passed = of.host(step).is_some() && of.is_skipped(step, Op::Do);
    let Some(first) = book.calls_of(saga, step, Op::Undo).next().filter(|_| !is_passed) else {
        return;
    };
    for (later, plan) in of.steps().filter(|(later, _)| of.is_behind(*later, step)) {
        // A person may end just this step at its host by force, or the saga that is a step, which is undone whole all the same.
        let is_ended = (plan.host.is_some() && of.is_forced_at_its_host(later)) || (of.is_sub(later) && of.is_forced());
        let is_skipped = of.is_skipped(later, Op::Undo) || of.is_skipped(later, Op::Do);
        let must_undo = plan.undo.is_some() && !is_skipped && !is_ended;
        let done = book.effect_of(saga, later, Op::Do).is_some_and(|(at, _)| at < first.entered);
        let undone = book.effect_of(saga, later, Op::Undo).is_some_and(|(at, _)| at < first.entered);
        let is_just_undone = book.ran_together(saga, later, Op::Undo, first).next().is_some();
        if must_undo && done && !undone && !is_just_undone {
            note(format!("{} began before {}", of.name(step, Op::Undo), of.name(later, Op::Undo)));
        }
    }
}
