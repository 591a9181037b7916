//! A saga that begins behind what another one did, over all shapes.

use proptest::prelude::*;
use saga_core::machine::{self, Command, Event, FailureKind, SagaState, Shape, Side, StepPhase};
use saga_core::store::{RecordedOutcome, Status};

use crate::arms::choices;
use crate::ledger::{Ledger, check_state};
use crate::shapes::{failure, groups, lists, shape};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// G5: what stands behind the chosen step is done, and what was taken over is neither done nor undone, whatever fails.
    #[test]
    fn g5_what_was_taken_over_is_neither_done_nor_undone(
        shape in prop_oneof![shape(), groups(), lists(), choices()],
        from in any::<prop::sample::Index>(),
        fails in 0..12_usize,
    ) {
        let from = from.index(shape.steps.len());
        let not_taken = not_taken(&shape, from, fails);
        let mut taken = shape.before(from);
        taken.retain(|step| !not_taken.contains(step));
        prop_assert!(!taken.contains(&from) && shape.predecessors(from).all(|before| taken.contains(&before) || not_taken.contains(&before)));
        let mut state = SagaState::new(shape.steps.len());
        let mut ledger = Ledger::default();
        let mut apply = |state: &mut SagaState, event: Event| {
            let decision = machine::apply(&shape, state, event).expect("it is accepted");
            ledger.write(&decision);
            check_state(&shape, state);
            decision.commands
        };
        let mut open = apply(&mut state, Event::Restarted { steps: taken.clone(), not_taken: not_taken.clone() });
        prop_assert_eq!(open.first(), Some(&Command::Do { step: from }));
        let (mut done, mut turn) = (Vec::new(), 0);
        while let Some(command) = open.pop() {
            turn += 1;
            prop_assert!(turn < 1_000, "it comes to an end");
            open.extend(match command {
                Command::Undo { step, .. } => {
                    prop_assert!(done.contains(&step), "step {} is undone, and was not done here", step);
                    apply(&mut state, Event::Undone { step, informed: true })
                }
                Command::Do { step } => {
                    prop_assert!(!taken.contains(&step), "step {} was taken over", step);
                    let is_list = shape.each(step).is_some() && state.items_of(step).is_none();
                    if shape.is_choice(step) {
                        apply(&mut state, Event::Chosen { step, arm: Some(turn % 2) })
                    } else if is_list {
                        apply(&mut state, Event::Listed { step, items: 2 })
                    } else if turn > fails && shape.side(state.base(step)) == Side::Before {
                        apply(&mut state, Event::Rejected { step, failure: failure(step, FailureKind::Rejected) })
                    } else {
                        done.push(step);
                        apply(&mut state, Event::Done { step })
                    }
                }
            });
        }
        prop_assert!(state.status().is_ended() || state.status() == Status::Stuck, "{:?}", state);
        for step in not_taken {
            prop_assert_eq!(state.steps[step].phase, StepPhase::NotTaken);
        }
        for step in taken {
            prop_assert_eq!(state.steps[step].phase, StepPhase::Skipped);
            prop_assert_eq!(ledger.outcome(step), Some(RecordedOutcome::Skipped));
        }
    }
}

/// What stands in the arms that were not taken, where `from` stands in those that were.
fn not_taken(shape: &Shape, from: usize, chance: usize) -> Vec<usize> {
    let before = shape.before(from);
    let mut passed = Vec::new();
    for step in before.iter().copied() {
        let is_passed = shape.arms_around(step).any(|arm| {
            let taken = shape.arms_around(from).find(|other| other.choice == arm.choice);
            let taken = taken.map_or((arm.choice + chance) % 2, |other| other.arm);
            before.contains(&arm.choice) && arm.arm != taken
        });
        if is_passed {
            passed.push(step);
        }
    }
    passed
}

/// Nothing is taken over by a saga that is under way.
#[test]
fn a_saga_that_has_begun_takes_nothing_over() {
    let step = |name| machine::StepShape::new(name, machine::Effect::External, machine::UndoShape::TakesUnknown);
    let shape = Shape { steps: vec![step("a"), step("b")], pivot: None };
    let (mut state, _) = machine::start(&shape);
    machine::apply(&shape, &mut state, Event::Done { step: 0 }).expect("it is accepted");
    let before = state.clone();
    let decision = machine::apply(&shape, &mut state, Event::Restarted { steps: vec![0, 1], not_taken: Vec::new() })
        .expect("it is accepted");
    assert_eq!((decision, state), (machine::Decision::default(), before));
}
