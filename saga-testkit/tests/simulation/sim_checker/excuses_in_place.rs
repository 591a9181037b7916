//! An excuse is of one step or of one time: it excuses nothing else.

use saga_testkit::checker::{
    Act, Final, Guarantee, Kind, Left, Nap, Op, Recorded, SagaPlan, Standing, StepPlan, UndoPlan, What,
};

use crate::sim_checker::excuses::{Run, step};

/// G3: an operator who ends a step where it is hosted answers for that step only.
#[test]
fn who_ends_a_hosted_step_answers_for_no_other() {
    let run = |row: u8| {
        let mut run =
            Run::of(vec![StepPlan { host: Some(1), ..step("s0", Kind::External) }, step("s1", Kind::External)]);
        run.acts(100, row, Act::Force(Standing::Completed));
        run.ends(Standing::Completed, &[]);
        run
    };
    run(0).is_sound();
    run(1).breaks(Guarantee::G3, "s1 never took effect");
}

/// G5: a slow call of the store explains what came behind it, and nothing that came before.
#[test]
fn a_slow_call_explains_nothing_that_came_before() {
    let run = |slow_at: u64| {
        let mut run = Run::of(vec![step("s0", Kind::External)]);
        run.at(slow_at, What::Repeated);
        run.at(50, What::StuckSeen { saga: 0 });
        run.call(100, 10, (0, Op::Do), None, Left::Done);
        run.at(102, What::Took { call: 10 });
        run.ends(Standing::Completed, &[(0, Op::Do, Recorded::Done, Some(10))]);
        run
    };
    run(40).is_sound();
    run(60).breaks(Guarantee::G5, "the saga was stuck, and no step of it had failed");
}

/// G4: of a step that was undone twice, the events of both calls arrive.
#[test]
fn two_undos_tell_their_events() {
    let run = |tellers: &[u64]| {
        let undo = UndoPlan { kind: Kind::External, takes_unknown: true, emits: 1, attempts: 3 };
        let mut run = Run::of(vec![StepPlan { undo: Some(undo), ..step("s0", Kind::External) }]);
        run.call(100, 10, (0, Op::Do), None, Left::Failed);
        run.call(200, 20, (0, Op::Undo), None, Left::Done);
        run.at(300, What::Took { call: 10 });
        run.call(400, 21, (0, Op::Undo), Some(10), Left::Done);
        run.at(400, What::Took { call: 21 });
        for call in tellers {
            let (tenant, key) = (String::new(), "key".to_owned());
            run.at(500 + call, What::Delivered { message: format!("of {call}"), tenant, key, call: *call, nth: 0 });
        }
        let undone = (0, Op::Undo, Recorded::Done, None);
        run.ends(Standing::Compensated, &[(0, Op::Do, Recorded::Unknown, None), undone, undone]);
        run
    };
    run(&[20, 21]).is_sound();
    run(&[21]).breaks(Guarantee::G4, "is recorded 2 times, and all events arrived of 1 calls of it");
}

/// G5: a saga that was started instead of another one sleeps as that one did, unless it begins behind the nap.
#[test]
fn a_saga_that_is_restarted_sleeps() {
    let run = |from: u8, called_at: u64| {
        let nap = Nap { lasts: 1_000, until: 0 };
        let steps = vec![step("s0", Kind::External), StepPlan { nap, ..step("s1", Kind::External) }];
        let mut run = Run::of(steps);
        let old = run.ledger.sagas[0].clone();
        run.ledger.sagas.push(SagaPlan { key: "key-again".to_owned(), ..old });
        run.ledger.finals.push(Final { variant: Some(0), standing: Standing::Stuck, ..Final::ABSENT });
        run.at(5_000, What::RestartCalled { call: 2, saga: 1, of: 0, from: vec![from] });
        let mut calls = vec![(called_at, 11, 1)];
        if from == 0 {
            calls.push((5_100, 10, 0));
        }
        for (at, call, step) in calls {
            let (op, fence) = (Op::Do, call);
            run.at(at, What::Entered { call, saga: 1, variant: 0, step, op, fence, reads: None, transaction: None });
            run.at(at + 1, What::Took { call });
            run.at(at + 2, What::Left { call, how: Left::Done });
        }
        run
    };
    let how = "s1 was called by call 11 during the nap before it";
    run(0, 5_600).breaks(Guarantee::G5, how);
    run(0, 6_200).breaks_not(how);
    run(1, 5_600).breaks_not(how);
}
