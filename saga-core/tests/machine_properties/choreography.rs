//! Steps that events ask for: what is told of them, deadlines, and the timeline that reports are joined to.

use proptest::prelude::*;
use saga_core::machine::{
    self, AtDeadline, Became, Caller, Effect, Event, Fact, FailureKind, Mark, Shape, StepShape, Timeline, UndoShape,
    answer_of, at_deadline, failed_by_now, reported,
};
use saga_core::store::{Answer, Status, Timestamp};

use crate::shapes::failure;

/// A step that an event asked for, as a host has it.
fn hosted(undo: UndoShape) -> (Shape, machine::SagaState) {
    let effect = Effect::External;
    let shape = Shape { steps: vec![StepShape::new("a", effect, undo)], pivot: None };
    let (mut state, _) = machine::start(&shape);
    let (reply_to, command) = (String::new(), Some(1));
    state.caller = Some(Box::new(Caller { reply_to, command, undo: None, traceparent: None, earlier: Vec::new() }));
    (shape, state)
}

fn event(kind: u8) -> Event {
    match kind {
        0 => Event::Done { step: 0 },
        1 => Event::Rejected { step: 0, failure: failure(0, FailureKind::Rejected) },
        2 => Event::Failed { step: 0, failure: failure(0, FailureKind::Failed) },
        3 => Event::Unknown { step: 0, failure: failure(0, FailureKind::Unknown) },
        4 => Event::Undone { step: 0, informed: true },
        5 => Event::LateSuccess { step: 0 },
        6 => Event::Cancelled { step: 0 },
        _ => Event::UndoRequested,
    }
}

/// One report, or one event that marks the saga: by whom, of what, in which place, at which time.
#[derive(Debug, Clone)]
enum Report {
    Fact(u8, u64, Became, i64),
    Mark(u8, Mark, i64),
}

fn report() -> impl Strategy<Value = Report> {
    let became = prop_oneof![
        Just(Became::Done),
        Just(Became::Rejected),
        Just(Became::Stuck),
        Just(Became::Undone),
        Just(Became::Tombstoned)
    ];
    let mark = prop_oneof![Just(Mark::Begun), Just(Mark::Completed), Just(Mark::Compensated)];
    prop_oneof![
        (0..4_u8, 1..4_u64, became, 0..9_i64)
            .prop_map(|(step, revision, became, at)| { Report::Fact(step, revision, became, at) }),
        (0..3_u8, mark, 0..9_i64).prop_map(|(name, mark, at)| Report::Mark(name, mark, at)),
    ]
}

fn note(timeline: &mut Timeline, report: &Report) {
    match *report {
        Report::Fact(step, revision, became, at) => {
            let fact = Fact { revision, became, reason: None };
            timeline.note_fact(
                ["stock", "payments"][usize::from(step) % 2],
                ["x", "y"][usize::from(step) / 2],
                fact,
                Timestamp(at),
            );
        }
        Report::Mark(name, mark, at) => timeline.note_event(["e", "f", "g"][usize::from(name)], mark, Timestamp(at)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Reports come in any order and more than once, and are stored in between.
    #[test]
    fn a_timeline_is_the_same_in_whatever_order_it_is_reported(
        reports in prop::collection::vec(report(), 0..20),
        again in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
        order in any::<u64>(),
    ) {
        let mut straight = Timeline::default();
        for report in &reports {
            note(&mut straight, report);
        }
        let mut shuffled = reports.clone();
        if !reports.is_empty() {
            shuffled.extend(again.iter().map(|index| index.get(&reports).clone()));
        }
        let count = shuffled.len();
        for index in 0..count {
            let other = usize::try_from(order.rotate_left(u32::try_from(index).unwrap() * 7)).unwrap() % count;
            shuffled.swap(index, other);
        }
        let mut joined = Timeline::default();
        for report in &shuffled {
            note(&mut joined, report);
            joined = Timeline::decode(&joined.encode()).unwrap();
        }
        prop_assert_eq!(&joined, &straight);
        prop_assert!(joined.entries().is_sorted_by_key(|entry| entry.at));
        let is_ended = reports.iter().any(|report| matches!(report, Report::Mark(_, mark, _) if *mark != Mark::Begun));
        prop_assert_eq!(joined.status().is_ended(), is_ended && joined.ended().is_some());
    }

    /// What was taken back is told to nobody as a failure; a deadline bars only what never began.
    #[test]
    fn what_is_told_of_a_step_follows_from_where_it_stands(
        undo in prop_oneof![Just(UndoShape::TakesUnknown), Just(UndoShape::NotNeeded)],
        kinds in prop::collection::vec(0..8_u8, 0..12),
    ) {
        let (shape, mut state) = hosted(undo);
        let mut failures = 0;
        for kind in kinds {
            let before = answer_of(&state);
            if kind == 7 {
                state.caller.as_mut().unwrap().undo = Some(2);
            }
            machine::apply(&shape, &mut state, event(kind)).unwrap();
            let is_taken_back = state.caller.as_ref().unwrap().undo.is_some();
            let told = failed_by_now(before, &state);
            failures += usize::from(told.is_some());
            prop_assert!(told.is_none() || !is_taken_back);
            let report = reported(before, &state);
            prop_assert!(report.is_none() || answer_of(&state) != before, "nothing new is reported");
            let is_failure = report.is_some_and(|(became, reason)| {
                matches!(became, Became::Rejected | Became::Failed) && reason.is_some()
            });
            prop_assert!(told.is_none() || is_failure, "what is told is reported with its reason");
            match at_deadline(Some(&state)) {
                AtDeadline::Tombstone => prop_assert!(false, "it has begun"),
                AtDeadline::Wait => prop_assert!(matches!(answer_of(&state), None | Some(Answer::Stuck))),
                AtDeadline::Decided => prop_assert!(state.status().is_ended()),
            }
        }
        prop_assert!(failures <= 2, "a failure, and one more where a late success was undone");
    }
}

/// A step that waits to be tried again is not, once an event has taken it back.
#[test]
fn g5_what_is_taken_back_is_not_tried_again() {
    for (maybe, expected) in [(false, Some(Event::Cancelled { step: 0 })), (true, None)] {
        let (shape, mut state) = hosted(UndoShape::TakesUnknown);
        let row = |state: &machine::SagaState| {
            let (command, effect) = (machine::Command::Do { step: 0 }, Effect::Transactional);
            machine::ClaimedRow {
                command,
                effect,
                undo: UndoShape::TakesUnknown,
                in_doubt: maybe,
                recovered: false,
                is_late: false,
                has_resolution: false,
            }
            .unwanted(state)
        };
        assert_eq!(row(&state), None);
        state.caller.as_mut().unwrap().undo = Some(2);
        machine::apply(&shape, &mut state, Event::UndoRequested).unwrap();
        assert_eq!(row(&state), expected, "what may have happened comes to its end");
        let Some(cancelled) = expected else { continue };
        let before = answer_of(&state);
        assert_eq!(machine::apply(&shape, &mut state, cancelled).unwrap().commands, []);
        assert_eq!((state.status(), answer_of(&state)), (Status::Compensated, Some(Answer::Undone)));
        assert_eq!(reported(before, &state), Some((Became::Tombstoned, None)));
    }
}

#[test]
fn g5_a_deadline_bars_what_never_began() {
    assert_eq!(at_deadline(None), AtDeadline::Tombstone);
}

#[test]
fn the_status_of_a_timeline_is_what_the_reports_say() {
    let check = |reports: &[(&str, u64, Became)], expected| {
        let mut timeline = Timeline::default();
        timeline.note_event("order-placed", Mark::Begun, Timestamp(1));
        for (step, revision, became) in reports {
            let fact = Fact { revision: *revision, became: *became, reason: None };
            timeline.note_fact("payments", step, fact, Timestamp(2));
        }
        assert_eq!(timeline.status(), expected, "{reports:?}");
        timeline.note_event("order-shipped", Mark::Completed, Timestamp(9));
        assert_eq!(timeline.status(), Status::Completed);
        timeline.note_event("order-expired", Mark::Compensated, Timestamp(8));
        assert_eq!(timeline.status(), Status::Compensated, "what was committed first counts");
    };
    check(&[], Status::Running);
    check(&[("charge-card", 2, Became::Done)], Status::Running);
    check(&[("charge-card", 2, Became::Rejected)], Status::Compensating);
    check(&[("charge-card", 3, Became::Undone), ("charge-card", 2, Became::Done)], Status::Compensating);
    check(&[("charge-card", 2, Became::Stuck)], Status::Stuck);
    check(&[("charge-card", 3, Became::Done), ("charge-card", 2, Became::Stuck)], Status::Running);
}

/// A report that no end of the list stops would fill a store.
#[test]
fn g8_a_timeline_is_cut_and_says_so() {
    let mut timeline = Timeline::default();
    for number in 0..2_000 {
        let fact = Fact { revision: 1, became: Became::Done, reason: None };
        timeline.note_fact("stock", &format!("note#{number}"), fact, Timestamp(number));
    }
    assert!(timeline.is_cut());
    assert_eq!(timeline.entries().len(), 1_000);
}
