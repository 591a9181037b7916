//! Orders of events that cannot happen: the machine accepts each, and its state stays sound.

use std::time::Duration;

use proptest::prelude::*;
use saga_core::machine::{self, Action, Command, Deadline, Event, FailureKind, Phase, StepPhase, Timer};
use saga_core::store::RecordedOutcome;

use crate::arms::choices;
use crate::ledger::{Ledger, are_apart, check_state};
use crate::shapes::{failure, groups, idlers, lists, rejection, shape};

fn event(kind: u8, step: usize) -> Event {
    let reason = || "no".to_owned();
    match kind {
        0 | 1 => Event::Done { step },
        2 => Event::Rejected { step, failure: failure(step, FailureKind::Rejected) },
        3 => Event::Failed { step, failure: failure(step, FailureKind::Failed) },
        4 => Event::Unknown { step, failure: failure(step, FailureKind::Unknown) },
        5 => Event::Cancelled { step },
        6 => Event::Blocked { step, reason: reason(), in_doubt: false },
        7 => Event::Blocked { step, reason: reason(), in_doubt: true },
        8 | 9 => Event::Undone { step, informed: kind == 9 },
        10 => Event::UndoBlocked { step, reason: reason() },
        11 => Event::LateSuccess { step },
        34 | 35 => Event::LateUnknown { step },
        12 => Event::Operator(Action::Retry),
        13 => Event::Operator(Action::Skip),
        14 => Event::UndoRequested,
        15 | 16 => Event::CancelRequested { reason: rejection("no longer wanted"), has_begun: kind == 15 },
        17 => Event::Operator(Action::Force { completed: true, reason: reason() }),
        22 => Event::Paused { by: Some("ann".to_owned()), reason: reason() },
        23 => Event::Parked { work: i64::from(kind) },
        24 => Event::Resumed,
        25 => Event::Restarted { steps: vec![step, 0], not_taken: vec![step + 1] },
        26..30 => Event::Chosen { step, arm: usize::from(kind - 26).checked_sub(1) },
        30 => Event::Operator(Action::Choose { arm: Some(step % 3) }),
        31 => Event::DeadlinePassed,
        32..34 => Event::Signalled { step, id: u128::from(kind) },
        19..22 => Event::Listed { step, items: usize::from(kind - 19) },
        _ => Event::Operator(Action::Force { completed: false, reason: reason() }),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    /// G5, G8: every event is accepted in every phase. Records are written once, what is under way is one thing, and
    /// only what took effect or may have is undone, the latest first.
    #[test]
    fn g8_every_event_is_accepted_in_every_phase(
        shape in prop_oneof![shape(), groups(), lists(), choices(), idlers()],
        has_deadline in any::<bool>(),
        events in prop::collection::vec((0..36_u8, 0..24_usize), 0..80),
    ) {
        let (mut state, _) = machine::start(&shape);
        if has_deadline {
            let deadline = Deadline { timer: Timer::started_with(0), within: Duration::from_secs(1) };
            machine::set_deadline(&shape, &mut state, deadline);
        }
        let mut ledger = Ledger::default();
        for (kind, step) in events {
            let event = event(kind, step % state.steps.len());
            let before = state.clone();
            let decision = match machine::apply(&shape, &mut state, event.clone()) {
                Ok(decision) => decision,
                Err(refused) => {
                    let is_lawful = match event {
                        Event::Operator(_) => before.stuck.is_none(),
                        Event::Paused { .. } => before.is_paused() || before.status().is_ended(),
                        Event::Resumed => !before.is_paused(),
                        Event::DeadlinePassed => before.deadline.is_none(),
                        Event::Signalled { step, .. } => {
                            let known = &before.steps[step];
                            let is_open = matches!(known.phase, StepPhase::Ready | StepPhase::Started);
                            let awaits = shape.awaits_signal(step) && before.phase == Phase::Running;
                            known.signal.is_some() || !is_open || !awaits
                        }
                        Event::CancelRequested { .. } => {
                            let has_begun = |pivot: usize| before.steps[pivot].phase != StepPhase::Ready;
                            before.phase != Phase::Running || shape.pivot.is_some_and(has_begun)
                        }
                        _ => false,
                    };
                    prop_assert!(is_lawful, "{}", refused);
                    prop_assert_eq!(&before, &state, "what is refused changes nothing");
                    continue;
                }
            };
            ledger.write(&decision);
            check_state(&shape, &state);
            prop_assert!(!shape.is_sequence() || decision.commands.len() <= 1);
            for command in decision.commands {
                match command {
                    Command::Do { step } => {
                        let is_elsewhere = state.steps[step].in_doubt || shape.is_child(state.base(step));
                        let is_asked_again = event == Event::Operator(Action::Retry) && is_elsewhere;
                        prop_assert!(state.phase == Phase::Running || is_asked_again, "nothing begins any more");
                        prop_assert_eq!(state.steps[step].phase, StepPhase::Started);
                        prop_assert_eq!(ledger.outcome(step), None, "what is recorded is not done again");
                    }
                    Command::Undo { step, round, .. } => {
                        let undone = state.steps[step];
                        prop_assert_eq!((state.phase, undone.phase), (Phase::Compensating, StepPhase::Undoing));
                        prop_assert_eq!(undone.undo_round, round);
                        let outcome = ledger.outcome(step);
                        let stands = matches!(outcome, Some(RecordedOutcome::Done | RecordedOutcome::Unknown));
                        prop_assert!(stands, "{:?} is not undone", outcome);
                        let later = state.steps.iter().enumerate().filter(|(other, later)| {
                            matches!(later.phase, StepPhase::Done | StepPhase::Unknown)
                                && later.position > undone.position
                                && !are_apart(&shape, &state, *other, step)
                                && shape.undo(&state, *other) != machine::UndoShape::NotNeeded
                        });
                        let is_new = before.steps[step].phase != StepPhase::Undoing;
                        prop_assert!(!is_new || later.count() == 0, "the latest is undone first");
                    }
                }
            }
        }
    }

    /// Bytes that no machine wrote are refused with a sentence, never by a panic.
    #[test]
    fn g8_any_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..64), steps in 0..7_usize) {
        if let Err(problem) = machine::SagaState::decode(&bytes, steps) {
            prop_assert!(problem.contains("its state"), "{}", problem);
        }
    }
}
