//! What the checker once took for a breach and is none, and beside each the breach that is nearest to it.

use saga_testkit::checker::{
    Act, Answer, Entry, Final, Guarantee, Kind, Ledger, Left, Nap, Op, RecordSeen, Recorded, SagaPlan, SagaTime,
    Standing, StepPlan, UndoPlan, Variant, What, check,
};

/// The row of a saga that is a step, and the place of that step.
const SUB: u8 = u8::MAX;

pub(crate) fn step(name: &str, kind: Kind) -> StepPlan {
    StepPlan {
        name: name.to_owned(),
        kind,
        host: None,
        undo: Some(UndoPlan { kind, takes_unknown: true, emits: 0, attempts: 3 }),
        after: None,
        arms: Vec::new(),
        is_sub: false,
        nap: Nap::default(),
        reads: None,
        is_pivot: false,
        is_exclusive: false,
        locks: None,
        held: Vec::new(),
        emits: 0,
        attempts: 3,
    }
}

/// A run of one saga that was started as its variant 0.
pub(crate) struct Run {
    pub(crate) ledger: Ledger,
}

impl Run {
    pub(crate) fn of(steps: Vec<StepPlan>) -> Self {
        let variants = vec![Variant { definition: "one".to_owned(), steps }];
        let (tenant, key, time) = (String::new(), "key".to_owned(), SagaTime::default());
        let plan = SagaPlan { tenant, key, is_taken_back: false, reborn_of: None, time, variants };
        let end = Final { variant: Some(0), ..Final::ABSENT };
        let mut run = Self { ledger: Ledger { sagas: vec![plan], finals: vec![end], ..Ledger::default() } };
        run.at(10, What::StartCalled { call: 1, saga: 0, variant: 0 });
        run.at(20, What::StartAnswered { call: 1, answer: Answer::Started { is_new: Some(true) } });
        run
    }

    pub(crate) fn at(&mut self, at: u64, what: What) {
        let place = self.ledger.entries.partition_point(|entry| entry.at <= at);
        self.ledger.entries.insert(place, Entry { at, process: 1, what });
    }

    /// A call that begins at a moment and returns five microseconds later.
    pub(crate) fn call(&mut self, at: u64, call: u64, (step, op): (u8, Op), reads: Option<u64>, how: Left) {
        let plan = &self.ledger.sagas[0].variants[0].steps[usize::from(step)];
        let (kind, name) = (plan.kind, plan.name.clone());
        let transaction = (kind == Kind::Transactional).then_some(call);
        let fence = self.ledger.entries.len() as u64;
        self.at(at, What::Entered { call, saga: 0, variant: 0, step, op, fence, reads, transaction });
        if kind == Kind::External {
            let undo = if op == Op::Undo { ":undo" } else { "" };
            self.at(at, What::Called { call, key: format!("key:{name}{undo}") });
        }
        self.at(at + 5, What::Left { call, how });
    }

    pub(crate) fn acts(&mut self, at: u64, row: u8, act: Act) {
        self.at(at, What::AuditRecord { saga: 0, row, act, call: 90, revision: 1 });
        self.at(at, What::ActAnswered { call: 90, is_done: true });
    }

    pub(crate) fn ends(&mut self, standing: Standing, records: &[(u8, Op, Recorded, Option<u64>)]) {
        let record = |(position, &(step, op, outcome, call)): (u32, &_)| RecordSeen {
            step,
            op,
            outcome,
            call,
            is_late: false,
            position,
        };
        self.ledger.finals[0].standing = standing;
        self.ledger.finals[0].records = (1..).zip(records).map(record).collect();
    }

    pub(crate) fn is_sound(&self) {
        assert_eq!(check(&self.ledger), []);
    }

    pub(crate) fn breaks_not(&self, how: &str) {
        let found = check(&self.ledger);
        assert!(found.iter().all(|violation| !violation.about.contains(how)), "{found:#?}");
    }

    pub(crate) fn breaks(&self, guarantee: Guarantee, how: &str) {
        let found = check(&self.ledger);
        let is_it = found.iter().any(|violation| violation.guarantee == guarantee && violation.about.contains(how));
        assert!(is_it, "{guarantee} {how:?} was not found, only {found:#?}");
    }
}

/// G5: a start whose transaction fails leaves calls of its variant behind; a nap of the variant that is accepted later says
/// nothing of them.
#[test]
fn a_start_that_failed_did_not_sleep() {
    let run = |variant: u8, commits: bool| {
        let nap = Nap { lasts: 1_000, until: 0 };
        let mut run = Run::of(vec![StepPlan { nap, ..step("s0", Kind::Transactional) }]);
        let other = Variant { definition: "other".to_owned(), steps: vec![step("s0", Kind::Transactional)] };
        run.ledger.sagas[0].variants.push(other);
        run.at(1, What::StartCalled { call: 2, saga: 0, variant });
        run.call(2, 10, (0, Op::Do), None, Left::Done);
        if let What::Entered { variant: of, .. } = &mut run.ledger.entries[1].what {
            *of = variant;
        }
        if commits {
            run.at(8, What::Wrote { call: 10 });
        }
        run.at(9, What::StartAnswered { call: 2, answer: Answer::Failed });
        run.call(2_000, 11, (0, Op::Do), None, Left::Done);
        run.at(2_006, What::Wrote { call: 11 });
        run.ends(Standing::Completed, &[(0, Op::Do, Recorded::Done, Some(11))]);
        run
    };
    run(1, false).is_sound();
    run(1, true).breaks(Guarantee::G5, "during the nap before it");
    run(0, false).breaks(Guarantee::G5, "during the nap before it");
}

/// G5: what a vanished owner may have begun is undone from the moment on at which the deadline called the saga off, and
/// not before.
#[test]
fn a_deadline_calls_off_from_its_own_moment_on() {
    let run = |undone_at: u64| {
        let mut run = Run::of(vec![step("s0", Kind::Transactional), step("s1", Kind::External)]);
        run.ledger.sagas[0].time.within = Some(5_000);
        run.ledger.finals[0].overdue_at = Some(6_000);
        run.call(100, 10, (0, Op::Do), None, Left::Done);
        run.at(106, What::Wrote { call: 10 });
        run.at(107, What::Crashed);
        run.call(undone_at, 20, (1, Op::Undo), None, Left::Done);
        run.at(undone_at, What::Barred { call: 20 });
        run.call(7_000, 21, (0, Op::Undo), Some(10), Left::Done);
        run.at(7_006, What::Wrote { call: 21 });
        let records = [
            (0, Op::Do, Recorded::Done, Some(10)),
            (1, Op::Do, Recorded::Unknown, None),
            (1, Op::Undo, Recorded::Done, None),
            (0, Op::Undo, Recorded::Done, None),
        ];
        run.ends(Standing::Compensated, &records);
        run
    };
    run(6_000).is_sound();
    run(5_999).breaks(Guarantee::G5, "there was nothing to undo");
}

/// G5, seeds 505847453108 and, at a host, 20339203: owners that vanish as often as a step may be called use it up, and nobody saw it
/// begin.
#[test]
fn a_step_is_used_up_by_as_many_vanished_owners_as_it_has_attempts() {
    let run = |crashes: u64, host: Option<u8>| {
        let mut run = Run::of(vec![StepPlan { host, ..step("s0", Kind::External) }]);
        (0..crashes).for_each(|nth| run.at(100 + nth, What::Crashed));
        run.call(500, 20, (0, Op::Undo), None, Left::Done);
        run.at(500, What::Barred { call: 20 });
        run.ends(Standing::Compensated, &[(0, Op::Do, Recorded::Unknown, None), (0, Op::Undo, Recorded::Done, None)]);
        run
    };
    for host in [None, Some(1)] {
        run(3, host).is_sound();
        run(2, host).breaks(Guarantee::G5, "there was nothing to undo");
    }
}

/// G5, seed 505847437098: a step of a group runs anew in the same transaction when another one has failed, and the undo that
/// follows in it is of what it did last.
#[test]
fn the_last_run_in_a_transaction_is_what_is_undone_in_it() {
    let run = |reads: u64| {
        let mut run = Run::of(vec![step("s0", Kind::Transactional)]);
        run.at(50, What::CancelCalled { call: 80, saga: 0 });
        for (at, call, op, reads) in
            [(100, 10, Op::Do, None), (110, 11, Op::Do, None), (120, 20, Op::Undo, Some(reads))]
        {
            let (transaction, fence) = (Some(1), call);
            run.at(at, What::Entered { call, saga: 0, variant: 0, step: 0, op, fence, reads, transaction });
            run.at(at + 5, What::Left { call, how: Left::Done });
        }
        run.at(130, What::Wrote { call: 11 });
        run.at(130, What::Wrote { call: 20 });
        run.ends(Standing::Compensated, &[(0, Op::Do, Recorded::Done, Some(11)), (0, Op::Undo, Recorded::Done, None)]);
        run
    };
    run(11).is_sound();
    run(10).breaks(Guarantee::G5, "which is not what its step did");
}

/// G5: what stands behind a step begins when a person goes past that step, and may land when the saga was called off since.
#[test]
fn what_was_gone_past_in_time_holds_up_nobody() {
    let run = |skipped_at: Option<u64>| {
        let mut run = Run::of(vec![step("s0", Kind::External), step("s1", Kind::External)]);
        run.call(50, 10, (0, Op::Do), None, Left::Failed);
        if let Some(at) = skipped_at {
            run.acts(at, 0, Act::Skip { step: 0, op: Op::Do });
        }
        run.call(150, 11, (1, Op::Do), None, Left::Failed);
        run.at(190, What::CancelCalled { call: 80, saga: 0 });
        run.at(200, What::CancelAnswered { call: 80, is_turned: true });
        run.at(300, What::Took { call: 10 });
        run.at(400, What::Took { call: 11 });
        run.call(500, 21, (1, Op::Undo), None, Left::Done);
        run.at(500, What::Took { call: 21 });
        let records = [
            (0, Op::Do, Recorded::Skipped, None),
            (1, Op::Do, Recorded::Unknown, None),
            (1, Op::Undo, Recorded::Done, None),
        ];
        run.ends(Standing::Compensated, &records);
        run
    };
    let how = "which ended when the saga was called off already";
    run(Some(100)).is_sound();
    run(Some(250)).breaks(Guarantee::G5, how);
    run(None).breaks(Guarantee::G5, how);
}

/// G5: a person may end the saga that is a step as completed while it undoes what it did; the saga around it then goes on.
#[test]
fn a_sub_saga_that_was_forced_to_be_completed_holds_up_nobody() {
    let run = |forced_at: u64, row: u8, standing: Standing| {
        let sub = StepPlan { is_sub: true, ..step("s0", Kind::External) };
        let mut run = Run::of(vec![sub, step("s1", Kind::External)]);
        run.call(50, 10, (0, Op::Do), None, Left::Done);
        run.at(52, What::Took { call: 10 });
        run.call(100, 20, (0, Op::Undo), Some(10), Left::Done);
        run.at(102, What::Took { call: 20 });
        run.acts(forced_at, row, Act::Force(standing));
        run.call(300, 11, (1, Op::Do), None, Left::Done);
        run.at(302, What::Took { call: 11 });
        let records = [
            (0, Op::Do, Recorded::Done, Some(10)),
            (0, Op::Undo, Recorded::Done, None),
            (1, Op::Do, Recorded::Done, Some(11)),
        ];
        run.ends(Standing::Completed, &records);
        run
    };
    let how = "key:s1 took effect by call 11 after key:s0:undo";
    run(200, SUB, Standing::Completed).is_sound();
    run(400, SUB, Standing::Completed).breaks(Guarantee::G5, how);
    run(200, SUB, Standing::Compensated).breaks(Guarantee::G5, how);
    run(200, 0, Standing::Completed).breaks(Guarantee::G5, how);
}

/// G3: a person who goes past the saga that is a step gives its result to what stands behind it, and to nobody inside of it.
#[test]
fn whoever_goes_past_a_sub_saga_gives_its_result() {
    let run = |skipped_at: Option<u64>, is_sub: bool| {
        let sub = StepPlan { is_sub: true, ..step("s0", Kind::Transactional) };
        let behind = StepPlan { is_sub, reads: Some(0), ..step("s1", Kind::Transactional) };
        let mut run = Run::of(vec![sub, behind]);
        run.call(50, 10, (0, Op::Do), None, Left::Rejected);
        if let Some(at) = skipped_at {
            run.acts(at, 0, Act::Skip { step: SUB, op: Op::Do });
        }
        run.call(300, 11, (1, Op::Do), Some(0), Left::Rejected);
        run.ends(Standing::Compensated, &[(1, Op::Do, Recorded::NotDone, None)]);
        run
    };
    let how = "was given the output of call Some(0) instead of None";
    run(Some(200), false).is_sound();
    run(Some(400), false).breaks(Guarantee::G3, how);
    run(Some(200), true).breaks(Guarantee::G3, how);
    run(None, false).breaks(Guarantee::G3, how);
}

/// G5: a process that was paused reports when its saga has ended and has given its lock away: the step is undone once more then. A saga
/// that has not ended undoes nothing without its lock.
#[test]
fn what_is_reported_when_the_saga_has_ended_is_undone_without_its_lock() {
    let run = |times: usize| {
        let mut run = Run::of(vec![StepPlan { held: vec![0], attempts: 1, ..step("s0", Kind::External) }]);
        let other = SagaPlan { key: "other".to_owned(), ..run.ledger.sagas[0].clone() };
        run.ledger.sagas.push(other);
        run.call(100, 10, (0, Op::Do), None, Left::Failed);
        run.call(200, 11, (0, Op::Undo), None, Left::Done);
        run.at(201, What::Barred { call: 11 });
        run.at(290, What::StartCalled { call: 3, saga: 1, variant: 0 });
        run.at(291, What::StartAnswered { call: 3, answer: Answer::Started { is_new: Some(true) } });
        let (op, fence, transaction) = (Op::Do, 50, None);
        run.at(300, What::Entered { call: 20, saga: 1, variant: 0, step: 0, op, fence, reads: None, transaction });
        run.at(301, What::Called { call: 20, key: "other:s0".to_owned() });
        run.at(302, What::Took { call: 20 });
        run.at(303, What::Left { call: 20, how: Left::Done });
        run.call(400, 12, (0, Op::Undo), None, Left::Done);
        run.at(401, What::Barred { call: 12 });
        run.ends(Standing::Completed, &[(0, Op::Do, Recorded::Done, Some(20))]);
        let records = std::mem::take(&mut run.ledger.finals[0].records);
        run.ledger.finals.push(Final { standing: Standing::Completed, variant: Some(0), records, ..Final::ABSENT });
        let undone = [(0, Op::Undo, Recorded::Done, None); 2];
        run.ends(Standing::Compensated, &[&[(0, Op::Do, Recorded::Unknown, None)], &undone[..times]].concat());
        run
    };
    run(2).is_sound();
    run(1).breaks(Guarantee::G5, "it used the account 0 before saga #0 was done with it");
}

/// G5: a cancelled saga decides without the answer of a process that is paused, and lets the lock of the step go. It may be undone
/// much later, when an operator lets it. An answer that is not late holds the lock.
#[test]
fn a_lock_is_free_when_the_saga_has_decided_without_the_answer() {
    let run = |outcome: Recorded, is_late: bool| {
        let mut run = Run::of(vec![StepPlan { locks: Some(0), attempts: 1, ..step("s0", Kind::External) }]);
        let other = SagaPlan { key: "other".to_owned(), ..run.ledger.sagas[0].clone() };
        run.ledger.sagas.push(other);
        let (op, fence, reads, transaction) = (Op::Do, 1, None, None);
        run.at(100, What::Entered { call: 10, saga: 0, variant: 0, step: 0, op, fence, reads, transaction });
        run.at(101, What::Called { call: 10, key: "key:s0".to_owned() });
        run.at(102, What::Took { call: 10 });
        run.at(150, What::CancelCalled { call: 80, saga: 0 });
        run.at(190, What::StartCalled { call: 3, saga: 1, variant: 0 });
        run.at(191, What::StartAnswered { call: 3, answer: Answer::Started { is_new: Some(true) } });
        run.at(200, What::Entered { call: 20, saga: 1, variant: 0, step: 0, op, fence: 2, reads, transaction });
        run.at(201, What::Called { call: 20, key: "other:s0".to_owned() });
        run.at(202, What::Took { call: 20 });
        run.at(203, What::Left { call: 20, how: Left::Done });
        run.at(300, What::Left { call: 10, how: Left::Done });
        run.call(400, 11, (0, Op::Undo), Some(10), Left::Done);
        run.at(401, What::Took { call: 11 });
        run.ends(Standing::Completed, &[(0, Op::Do, Recorded::Done, Some(20))]);
        let records = std::mem::take(&mut run.ledger.finals[0].records);
        run.ledger.finals.push(Final { standing: Standing::Completed, variant: Some(0), records, ..Final::ABSENT });
        let call = (outcome == Recorded::Done).then_some(10);
        run.ends(Standing::Compensated, &[(0, Op::Do, outcome, call), (0, Op::Undo, Recorded::Done, None)]);
        run.ledger.finals[0].records[0].is_late = is_late;
        run
    };
    run(Recorded::Done, true).is_sound();
    // The saga never learned what became of the call. Its undo had to wait for the lock.
    run(Recorded::Unknown, false).is_sound();
    run(Recorded::Done, false).breaks(Guarantee::G5, "call 20 was made for the account 0 during call 10 of saga #0");
}

/// G5: an operator may end a saga by force while a host still has the command of a step as a dead letter. When that letter is replayed,
/// the host does the step, whatever else of the saga was done late and undone by then.
#[test]
fn a_host_may_do_late_what_a_forced_saga_had_asked_it_for() {
    let run = |host: Option<u8>, row: u8, forced_at: u64| {
        let hosted = |name: &str| StepPlan { host, after: Some(Vec::new()), ..step(name, Kind::External) };
        let mut run = Run::of(vec![hosted("s0"), hosted("s1")]);
        run.acts(forced_at, row, Act::Force(Standing::Compensated));
        run.call(100, 10, (0, Op::Do), None, Left::Done);
        run.at(102, What::Took { call: 10 });
        run.call(200, 20, (0, Op::Undo), Some(10), Left::Done);
        run.at(202, What::Took { call: 20 });
        run.call(300, 11, (1, Op::Do), None, Left::Done);
        run.at(302, What::Took { call: 11 });
        let records = [
            (0, Op::Do, Recorded::Done, Some(10)),
            (0, Op::Undo, Recorded::Done, None),
            (1, Op::Do, Recorded::Done, Some(11)),
        ];
        run.ends(Standing::Compensated, &records);
        run.ledger.finals[0].told = run.ledger.finals[0].records.clone();
        run
    };
    let how = "key:s1 took effect by call 11 after key:s0:undo";
    run(Some(1), 0, 50).is_sound();
    run(Some(1), 0, 400).breaks(Guarantee::G5, how);
    run(Some(1), 1, 50).breaks(Guarantee::G5, how);
    run(None, 0, 50).breaks(Guarantee::G5, how);
}
