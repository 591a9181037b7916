//! What an operator takes upon himself is no violation, and what he does not is one all the same.

use saga_testkit::checker::{Act, Guarantee, Kind, Ledger, Left, Op, RecordSeen, Recorded, Standing, What, check};
use saga_testkit::sim::Random;

use crate::sim_checker::damage::{calls, plan};
use crate::sim_checker::sound;

/// So many ledgers are found that fit each case.
const CASES: usize = 25;
/// The number of what is added to a ledger.
const ADDED: u64 = 1_000_000;

/// Ledgers in which `change` found something to change.
fn changed<T>(change: impl Fn(&mut Ledger) -> Option<T>) -> Vec<(Ledger, T)> {
    let ledgers = (0..4_000).filter_map(|seed| {
        let mut ledger = sound::ledger(&mut Random::new(seed));
        change(&mut ledger).map(|found| (ledger, found))
    });
    let ledgers: Vec<_> = ledgers.take(CASES).collect();
    assert_eq!(ledgers.len(), CASES, "too few ledgers fit");
    ledgers
}

fn is_broken(ledger: &Ledger, guarantee: Guarantee, how: &str) -> bool {
    check(ledger).iter().any(|violation| violation.guarantee == guarantee && violation.to_string().contains(how))
}

fn push(ledger: &mut Ledger, what: What) {
    let mut entry = ledger.entries[0].clone();
    (entry.at, entry.what) = (ledger.entries.len() as u64, what);
    ledger.entries.push(entry);
}

fn skip_undo(ledger: &mut Ledger, saga: usize, step: u8) {
    let act = Act::Skip { step, op: Op::Undo };
    push(ledger, What::AuditRecord { saga: saga as u32, row: 0, act, call: ADDED, revision: 1 });
    push(ledger, What::ActAnswered { call: ADDED, is_done: true });
}

/// A call that is on its way when its caller gives up.
fn call(ledger: &mut Ledger, saga: usize, step: u8, op: Op, reads: Option<u64>, key: String) {
    let saga = saga as u32;
    push(ledger, What::Entered { call: ADDED, saga, variant: 0, step, op, fence: ADDED, reads, transaction: None });
    push(ledger, What::Called { call: ADDED, key });
    push(ledger, What::Left { call: ADDED, how: Left::Failed });
}

fn key_of(ledger: &Ledger, number: u64) -> Option<String> {
    ledger.entries.iter().find_map(|entry| match &entry.what {
        What::Called { call, key } if *call == number => Some(key.clone()),
        _ => None,
    })
}

/// A step of which nobody knew whether it happened, whose undo never succeeded, behind one that was undone; and the last
/// call of it.
fn undo_that_never_succeeded(ledger: &mut Ledger) -> Option<(usize, u8, u64)> {
    let (saga, step) = ledger.finals.iter().enumerate().find_map(|(saga, end)| {
        let unknown = end.records.iter().find(|record| record.outcome == Recorded::Unknown)?;
        let is_undone = |record: &&RecordSeen| record.op == Op::Undo && record.step < unknown.step;
        let is_here = plan(ledger, saga, unknown.step).host.is_none();
        (is_here && end.records.iter().any(|record| is_undone(&record))).then_some((saga, unknown.step))
    })?;
    let (done, undone) = (calls(ledger, saga, step, Op::Do), calls(ledger, saga, step, Op::Undo));
    ledger.entries.retain_mut(|entry| match &mut entry.what {
        What::Left { call, how } if undone.contains(call) => {
            *how = Left::Failed;
            true
        }
        What::Took { call } => !done.contains(call) && !undone.contains(call),
        What::Barred { call } | What::Delivered { call, .. } => !undone.contains(call),
        _ => true,
    });
    let record = ledger.finals[saga].records.iter_mut().find(|record| (record.step, record.op) == (step, Op::Undo))?;
    record.outcome = Recorded::Skipped;
    Some((saga, step, *done.last()?))
}

/// G5: whoever goes past the undo of an unknown step leaves what is on its way, and nothing else.
#[test]
fn what_was_on_its_way_may_land_when_its_undo_was_skipped() {
    for (ledger, (saga, step, last)) in changed(undo_that_never_succeeded) {
        let landed = |number| format!("took effect by call {number} after");
        let mut skipped = ledger.clone();
        skip_undo(&mut skipped, saga, step);

        let mut excused = skipped.clone();
        push(&mut excused, What::Took { call: last });
        assert_eq!(check(&excused), []);

        let mut nobody_acted = ledger;
        push(&mut nobody_acted, What::Took { call: last });
        assert!(is_broken(&nobody_acted, Guarantee::G5, &landed(last)));

        let mut begun_behind_it = skipped;
        let key = key_of(&begun_behind_it, last).unwrap();
        call(&mut begun_behind_it, saga, step, Op::Do, None, key);
        push(&mut begun_behind_it, What::Took { call: ADDED });
        assert!(is_broken(&begun_behind_it, Guarantee::G5, &landed(ADDED)));
    }
}

/// A step that was undone by a call; the output that this was given, and the call.
fn undo_outside(ledger: &mut Ledger) -> Option<(usize, u8, u64, u64)> {
    let (saga, step) = (0..ledger.finals.len()).find_map(|saga| {
        let end = &ledger.finals[saga];
        let mut undone = end.records.iter().filter(|record| (record.op, record.outcome) == (Op::Undo, Recorded::Done));
        let is_call =
            |step: u8| plan(ledger, saga, step).kind == Kind::External && plan(ledger, saga, step).host.is_none();
        let undone = undone.find(|record| is_call(record.step))?;
        (end.standing == Standing::Compensated).then_some((saga, undone.step))
    })?;
    let undone = *calls(ledger, saga, step, Op::Undo).last()?;
    let entered = |what: &What| match *what {
        What::Entered { call, reads: Some(reads), .. } if call == undone => Some(reads),
        _ => None,
    };
    let reads = ledger.entries.iter().find_map(|entry| entered(&entry.what))?;
    Some((saga, step, reads, undone))
}

/// G3: a second undo has a key of its own, also where it does not succeed and an operator goes past it; a second key for
/// an undo that is recorded once is one too many.
#[test]
fn a_second_undo_that_was_skipped_has_a_key_of_its_own() {
    for (mut ledger, (saga, step, reads, undone)) in changed(undo_outside) {
        let key = format!("{}#2", key_of(&ledger, undone).unwrap());
        call(&mut ledger, saga, step, Op::Undo, Some(reads), key);
        assert!(is_broken(&ledger, Guarantee::G3, "was called with 2 keys"));
        skip_undo(&mut ledger, saga, step);
        let records = &mut ledger.finals[saga].records;
        let mut second = records[0].clone();
        (second.step, second.op, second.outcome, second.call) = (step, Op::Undo, Recorded::Skipped, None);
        second.position = records.len() as u32;
        records.push(second);
        assert_eq!(check(&ledger), []);
    }
}

/// G5: what begins when somebody wanted the saga to go on begins in time, whether the answer came or not.
#[test]
fn a_pause_is_over_when_somebody_ends_it() {
    let last_step = |ledger: &mut Ledger| {
        let place = ledger.entries.iter().rposition(|entry| matches!(entry.what, What::Entered { step: 1.., .. }))?;
        let What::Entered { saga, step, op: Op::Do, .. } = ledger.entries[place].what else { return None };
        let before = |entry: &saga_testkit::checker::Entry| match entry.what {
            What::Entered { saga: other, step: earlier, .. } => other == saga && earlier < step,
            _ => false,
        };
        ledger.entries[..place].iter().any(before).then_some((saga, place))
    };
    for (ledger, (saga, place)) in changed(last_step) {
        let insert = |ledger: &mut Ledger, at: usize, what: What| {
            let mut entry = ledger.entries[0].clone();
            entry.what = what;
            ledger.entries.insert(at, entry);
        };
        let mut held_up = ledger;
        insert(&mut held_up, 0, What::PauseAnswered { call: ADDED, is_paused: true });
        insert(&mut held_up, 0, What::PauseCalled { call: ADDED, saga });
        assert!(is_broken(&held_up, Guarantee::G5, "while the saga was paused"));

        let mut uncertain = held_up.clone();
        insert(&mut uncertain, 0, What::ResumeCalled { call: ADDED + 1, saga });
        assert_eq!(check(&uncertain), [], "somebody may have ended it at any time");

        let mut let_go = held_up;
        let first = let_go
            .entries
            .iter()
            .position(|entry| matches!(&entry.what, What::Entered { saga: other, .. } if *other == saga));
        insert(&mut let_go, first.unwrap().min(place), What::ResumeCalled { call: ADDED + 1, saga });
        assert_eq!(check(&let_go), []);
    }
}
