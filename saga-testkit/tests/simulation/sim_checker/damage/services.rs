//! Damages of what services ask of each other and tell each other.

#![expect(clippy::unnecessary_wraps, reason = "every damage has one signature, for the table")]

use saga_testkit::checker::{Ledger, Op, Recorded, Sent, Standing, What};
use saga_testkit::sim::Random;

use super::tools::{do_after_undo, insert, is_compensated, of, place, plan, remove_undo};

pub(super) fn step_asked_for_by_two_commands(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Sent { kind: Sent::Command, .. }))?;
    let mut what = ledger.entries[at].what.clone();
    let What::Sent { message, .. } = &mut what else { return None };
    message.push_str("-again");
    insert(ledger, at + 1, what);
    Some(())
}

pub(super) fn told_an_output_that_was_not_recorded(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let (saga, told) = told(ledger, random, Recorded::Done)?;
    let call = &mut ledger.finals[saga].told[told].call;
    *call = call.map(|call| call + 1_000_000);
    Some(())
}

pub(super) fn completed_without_being_told(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let (saga, told) = told(ledger, random, Recorded::Done)?;
    if is_compensated(ledger, saga) {
        return None;
    }
    ledger.finals[saga].told.remove(told);
    Some(())
}

pub(super) fn reply_to_nothing(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let asked = asked_of(ledger, random)?;
    *asked = Some("nothing".to_owned());
    Some(())
}

pub(super) fn reply_to_another_step(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Sent { kind: Sent::Reply, .. }))?;
    let What::Sent { step, .. } = &mut ledger.entries[at].what else { return None };
    *step += 1;
    Some(())
}

pub(super) fn one_id_for_two_messages(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Sent { kind: Sent::Command, .. }))?;
    let mut what = ledger.entries[at].what.clone();
    let What::Sent { kind, .. } = &mut what else { return None };
    *kind = Sent::Undo;
    insert(ledger, at + 1, what);
    Some(())
}

pub(super) fn undo_with_another_input(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Sent { kind: Sent::Undo, .. }))?;
    let What::Sent { input, .. } = &mut ledger.entries[at].what else { return None };
    input.as_mut()?.push_str(" and more");
    Some(())
}

pub(super) fn message_of_no_saga(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let at = place(ledger, random, |_, what| matches!(what, What::Sent { .. }))?;
    let What::Sent { saga, .. } = &mut ledger.entries[at].what else { return None };
    *saga = u32::MAX;
    Some(())
}

pub(super) fn message_kept_by_nobody(ledger: &mut Ledger, _: &mut Random) -> Option<()> {
    ledger.rest.unknown_messages = 1;
    Some(())
}

pub(super) fn told_that_it_did_not_happen(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let (saga, told) = told(ledger, random, Recorded::Done)?;
    if is_compensated(ledger, saga) {
        return None;
    }
    ledger.finals[saga].told[told].outcome = Recorded::NotDone;
    Some(())
}

pub(super) fn host_never_undid(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let (saga, step) = hosted_undo(ledger, random)?;
    remove_undo(ledger, saga, step);
    Some(())
}

pub(super) fn done_after_it_was_taken_back(ledger: &mut Ledger, random: &mut Random) -> Option<()> {
    let (saga, step) = hosted_undo(ledger, random)?;
    do_after_undo(ledger, saga, step)
}

pub(super) fn letter_left_open(ledger: &mut Ledger, _: &mut Random) -> Option<()> {
    ledger.rest.letters = 1;
    Some(())
}

pub(super) fn work_left_at_a_host(ledger: &mut Ledger, _: &mut Random) -> Option<()> {
    ledger.rest.work = 1;
    Some(())
}

/// What a reply answers.
fn asked_of<'a>(ledger: &'a mut Ledger, random: &mut Random) -> Option<&'a mut Option<String>> {
    let at = place(ledger, random, |_, what| matches!(what, What::Sent { kind: Sent::Reply, .. }))?;
    let What::Sent { asked, .. } = &mut ledger.entries[at].what else { return None };
    Some(asked)
}

/// A saga, and the place of what it was told of a step of another service.
fn told(ledger: &Ledger, random: &mut Random, outcome: Recorded) -> Option<(usize, usize)> {
    let all = ledger.finals.iter().enumerate().filter(|(_, end)| end.standing != Standing::Absent);
    let all: Vec<_> = all
        .flat_map(|(saga, end)| end.told.iter().enumerate().map(move |(at, told)| (saga, at, told)))
        .filter(|(_, _, told)| told.op == Op::Do && told.outcome == outcome)
        .map(|(saga, at, _)| (saga, at))
        .collect();
    (!all.is_empty()).then(|| *random.pick(&all))
}

/// A step of another service that was undone there.
fn hosted_undo(ledger: &Ledger, random: &mut Random) -> Option<(usize, u8)> {
    let at = place(ledger, random, |ledger, what| match what {
        What::Took { call } | What::Wrote { call } => {
            of(ledger, *call).is_some_and(|(saga, step, op)| op == Op::Undo && plan(ledger, saga, step).host.is_some())
        }
        _ => false,
    })?;
    let (What::Took { call } | What::Wrote { call }) = ledger.entries[at].what else { return None };
    of(ledger, call).map(|(saga, step, _)| (saga, step))
}
