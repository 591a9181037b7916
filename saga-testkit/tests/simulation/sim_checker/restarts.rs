//! What a saga takes over from another one is neither done again nor undone, and it was there to be taken over.

use saga_testkit::checker::{
    Act, Answer, Entry, Final, Guarantee, Ledger, Left, Op, RecordSeen, Recorded, SagaPlan, SagaTime, Standing, What,
    check,
};
use saga_testkit::sim::Random;

use crate::sim_checker::damage::calls;
use crate::sim_checker::sound;

/// So many ledgers are found that fit each case.
const CASES: usize = 25;
/// The numbers of what is added to a ledger.
const RESTART: u64 = 1_000_000;
const CALL: u64 = 2_000_000;

/// A ledger with one saga more: it was started instead of `old` to do the last step of it once more.
struct Heir {
    ledger: Ledger,
    old: usize,
    index: usize,
    last: u8,
}

/// Ledgers with a completed saga whose last step is a call that reads nothing, and an heir of that one.
fn heirs() -> Vec<Heir> {
    let heirs: Vec<Heir> =
        (0..8_000).filter_map(|seed| heir(sound::ledger(&mut Random::new(seed)))).take(CASES).collect();
    assert_eq!(heirs.len(), CASES, "too few ledgers fit");
    heirs
}

fn heir(mut ledger: Ledger) -> Option<Heir> {
    let is_fit = |saga: &usize| {
        let steps = &ledger.sagas[*saga].variants[0].steps;
        let last = &steps[steps.len() - 1];
        ledger.finals[*saga].standing == Standing::Completed
            && last.host.is_none()
            && last.emits == 0
            && last.reads.is_none()
            && last.kind == saga_testkit::checker::Kind::External
    };
    let old = (0..ledger.sagas.len()).find(is_fit)?;
    let SagaPlan { tenant, key, variants, .. } = ledger.sagas[old].clone();
    let last = (variants[0].steps.len() - 1) as u8;
    let (heir, key) = (ledger.sagas.len(), format!("{key}-again"));
    let outside = format!("{tenant}/{key}:last");
    let (variants, time) = (vec![variants[0].clone()], SagaTime::default());
    ledger.sagas.push(SagaPlan { tenant, key, is_taken_back: false, reborn_of: None, time, variants });
    let mut records: Vec<RecordSeen> = ledger.finals[old].records.clone();
    records.retain(|record| record.op == Op::Do && record.step < last);
    for (position, record) in (1..).zip(&mut records) {
        (record.outcome, record.position, record.is_late) = (Recorded::Skipped, position, false);
    }
    let own = RecordSeen { call: Some(CALL), ..records.first()?.clone() };
    records.push(RecordSeen { step: last, outcome: Recorded::Done, position: records.len() as u32 + 1, ..own });
    let standing = Standing::Completed;
    ledger.finals.push(Final { standing, variant: Some(0), records, ..Final::ABSENT });
    restart(&mut ledger, heir, old, last, Answer::Started { is_new: Some(true) }, 0);
    call(&mut ledger, heir, last, Op::Do, CALL, &outside);
    Some(Heir { ledger, old, index: heir, last })
}

fn push(ledger: &mut Ledger, what: What) {
    let at = ledger.entries.len() as u64;
    ledger.entries.push(Entry { at, process: 1, what });
}

fn restart(ledger: &mut Ledger, heir: usize, of: usize, from: u8, answer: Answer, nth: u64) {
    let (call, from) = (RESTART + nth, vec![from]);
    push(ledger, What::RestartCalled { call, saga: heir as u32, of: of as u32, from });
    push(ledger, What::StartAnswered { call, answer });
}

/// A call that takes effect.
fn call(ledger: &mut Ledger, saga: usize, step: u8, op: Op, call: u64, key: &str) {
    let saga = saga as u32;
    push(ledger, What::Entered { call, saga, variant: 0, step, op, fence: 1, reads: None, transaction: None });
    push(ledger, What::Called { call, key: key.to_owned() });
    push(ledger, What::Took { call });
    push(ledger, What::Left { call, how: Left::Done });
}

fn is_found(ledger: &Ledger, guarantee: Guarantee, how: &str) -> bool {
    check(ledger).iter().any(|violation| violation.guarantee == guarantee && violation.about.contains(how))
}

#[test]
fn what_is_taken_over_soundly_passes() {
    for Heir { ledger, index: heir, old, last } in heirs() {
        assert_eq!(check(&ledger), []);
        let mut again = ledger;
        restart(&mut again, heir, old, last, Answer::Started { is_new: Some(false) }, 1);
        assert_eq!(check(&again), [], "the same wish has the same answer");
        let mut other = again;
        restart(&mut other, heir, old, 0, Answer::Refused, 2);
        assert_eq!(check(&other), [], "and another one none");
    }
}

/// G2, G3: who did it does not matter: it was done.
#[test]
fn what_was_taken_over_is_not_done_again() {
    for Heir { mut ledger, index: heir, .. } in heirs() {
        call(&mut ledger, heir, 0, Op::Do, CALL + 1, "again");
        let found = check(&ledger);
        let mut of_it = found.iter().filter(|violation| violation.about.contains("was taken over, and done again"));
        assert!(of_it.any(|violation| matches!(violation.guarantee, Guarantee::G2 | Guarantee::G3)), "{found:?}");
    }
}

/// G5: it belongs to the saga that did it, so that the new one never undoes it, and the old one has ended.
#[test]
fn what_was_taken_over_is_undone_by_nobody() {
    for Heir { ledger, old, index: heir, .. } in heirs() {
        let mut by_heir = ledger.clone();
        call(&mut by_heir, heir, 0, Op::Undo, CALL + 1, "undo");
        assert!(is_found(&by_heir, Guarantee::G5, "was taken over, and undone"));
        let mut by_old = ledger;
        call(&mut by_old, old, 0, Op::Undo, CALL + 1, "undo");
        assert!(is_found(&by_old, Guarantee::G5, "was taken over, and its own saga undid it"));
    }
}

/// G5: what nobody did cannot be taken over, unless a person said that it counts as done.
#[test]
fn what_never_took_effect_is_not_taken_over() {
    for Heir { mut ledger, old, .. } in heirs() {
        let done = calls(&ledger, old, 0, Op::Do);
        ledger.entries.retain(|entry| match &entry.what {
            What::Took { call } | What::Wrote { call } => !done.contains(call),
            _ => true,
        });
        let how = "was taken over, and had not taken effect";
        assert!(is_found(&ledger, Guarantee::G5, how));
        let act = Act::Skip { step: 0, op: Op::Do };
        push(&mut ledger, What::AuditRecord { saga: old as u32, row: 0, act, call: CALL + 1, revision: 1 });
        push(&mut ledger, What::ActAnswered { call: CALL + 1, is_done: true });
        assert!(!is_found(&ledger, Guarantee::G5, how));
    }
}

/// G6: one key is one saga, whoever asks for it.
#[test]
fn a_key_is_taken_over_for_once() {
    for Heir { ledger, old, index: heir, last } in heirs() {
        let asked = |of: usize, from: u8, answer: Answer| {
            let mut asked = ledger.clone();
            restart(&mut asked, heir, of, from, answer, 1);
            asked
        };
        let new = Answer::Started { is_new: Some(true) };
        let known = Answer::Started { is_new: Some(false) };
        assert!(is_found(&asked(old, last, new), Guarantee::G6, "2 restarts were told that they made the saga"));
        assert!(is_found(&asked(old, 0, known), Guarantee::G6, "was accepted beside restart"));
        assert!(is_found(&asked(heir, 0, known), Guarantee::G6, "put the saga in its own place"));
        assert!(is_found(&asked(old, last, Answer::Refused), Guarantee::G6, "made just that saga"));
        let mut absent = ledger.clone();
        (absent.finals[heir].standing, absent.finals[heir].variant) = (Standing::Absent, None);
        assert!(is_found(&absent, Guarantee::G6, "returned, and there is no saga"));
    }
}

/// G7: a plan that is carried out again does nothing twice.
#[test]
fn an_act_of_a_plan_is_done_once() {
    for Heir { mut ledger, old, .. } in heirs() {
        let act = Act::Retry;
        push(&mut ledger, What::AuditRecord { saga: old as u32, row: 0, act, call: CALL + 1, revision: 1 });
        push(&mut ledger, What::ActAnswered { call: CALL + 1, is_done: true });
        assert_eq!(check(&ledger), []);
        push(&mut ledger, What::ActAnswered { call: CALL + 1, is_done: true });
        assert!(is_found(&ledger, Guarantee::G7, "was done 2 times"));
    }
}
