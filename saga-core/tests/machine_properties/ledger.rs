//! What a store would hold of the machine's decisions.

use std::collections::{BTreeMap, BTreeSet};

use saga_core::machine::{Decision, Phase, SagaState, Shape, StepPhase};
use saga_core::store::{RecordedOutcome, Status};

/// The step records, under the step and the round of its undo (0 for the step itself).
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    records: BTreeMap<(usize, u32), RecordedOutcome>,
    lists: BTreeSet<usize>,
    position: u32,
}

impl Ledger {
    /// Writes what was decided, as a store would: a record is inserted once, and revised as it was expected.
    pub(crate) fn write(&mut self, decision: &Decision) {
        if let Some((step, position)) = decision.listed {
            assert!(self.lists.insert(step), "two lists of step {step}");
            assert!(position > self.position, "positions grow: {position} after {}", self.position);
            self.position = position;
        }
        if let Some((step, position)) = decision.signalled {
            assert!(self.lists.insert(step), "two signals for step {step}");
            assert!(position > self.position, "positions grow: {position} after {}", self.position);
            self.position = position;
        }
        for record in decision.record.iter().chain(&decision.further) {
            let key = (record.step, record.undo_round.unwrap_or(0));
            assert!(self.records.insert(key, record.outcome).is_none(), "two records of {key:?}");
            assert!(record.position > self.position, "positions grow: {record:?} after {}", self.position);
            self.position = record.position;
        }
        if let Some(revision) = decision.revision {
            let known = self.records.insert((revision.step, 0), revision.outcome);
            assert_eq!(known, Some(revision.expected), "the record of step {} is not as expected", revision.step);
        }
    }

    pub(crate) fn outcome(&self, step: usize) -> Option<RecordedOutcome> {
        self.records.get(&(step, 0)).copied()
    }
}

/// Whether the two may be under way at once: they stand in two branches, or are items of one list.
pub(crate) fn are_apart(shape: &Shape, state: &SagaState, one: usize, other: usize) -> bool {
    let (of_one, of_other) = (state.base(one), state.base(other));
    one != other && (of_one == of_other || shape.are_concurrent(of_one, of_other))
}

/// What holds of every state, whatever came before.
pub(crate) fn check_state(shape: &Shape, state: &SagaState) {
    let again = SagaState::decode(&state.encode(), shape.steps.len()).expect("a state is read as it was written");
    assert_eq!(&again, state);
    let status = match (&state.stuck, state.phase) {
        (_, Phase::Running | Phase::Compensating) if state.paused.is_some() => Status::Paused,
        (Some(_), _) => Status::Stuck,
        (None, Phase::Running) => Status::Running,
        (None, Phase::Compensating) => Status::Compensating,
        (None, Phase::Completed) => Status::Completed,
        (None, Phase::Compensated) => Status::Compensated,
    };
    assert_eq!(state.status(), status);
    let under_way: Vec<usize> = (0..state.steps.len())
        .filter(|&step| matches!(state.steps[step].phase, StepPhase::Started | StepPhase::Undoing))
        .collect();
    // A saga that has not ended has a step under way: a command or a person decides about it (G11). Without groups it is
    // exactly one, and none when it has ended. While it is paused a person decides about all of it. Beside what was stuck, a person may end a saga with more under way.
    if status == Status::Paused {
        assert!(!shape.is_sequence() || under_way.len() <= 1, "under way are {under_way:?}");
    } else if shape.is_sequence() {
        assert_eq!(under_way.len(), usize::from(!status.is_ended()), "{status}: under way are {under_way:?}");
    } else if status.is_ended() {
        assert!(under_way.is_empty() || state.forced.is_some(), "{status}: under way are {under_way:?}");
    } else {
        assert!(!under_way.is_empty(), "{status}: nothing is under way");
    }
    let is_ahead = |pivot: usize| state.steps[pivot].phase == StepPhase::Ready;
    let has_time = state.phase == Phase::Running && shape.pivot.is_none_or(is_ahead);
    assert!(has_time || state.deadline.is_none(), "a deadline that says nothing is let go");
    let waits = |step: &usize| state.steps[*step].timer.is_some();
    assert!((0..state.steps.len()).filter(waits).all(|step| under_way.contains(&step)), "who waits is under way");
    for (number, step) in under_way.iter().enumerate() {
        let mut beside = under_way[number + 1..].iter();
        assert!(
            beside.all(|other| are_apart(shape, state, *step, *other)),
            "of one branch are under way {under_way:?}"
        );
    }
    for items in &state.items {
        let count = |phase| state.steps[items.range()].iter().filter(|item| item.phase == phase).count();
        let at_once = shape.each(items.step).expect("only a step that is done for each has items");
        assert!(count(StepPhase::Started) <= at_once && count(StepPhase::Undoing) <= at_once, "more than {at_once}");
    }
    assert!(state.paused.is_none() || !status.is_ended(), "a pause ends with its saga");
    check_choices(shape, state);
    assert!(state.stuck.is_some() || state.also_stuck.is_empty(), "what is stuck is seen");
    for stuck in state.stuck.iter().chain(&state.also_stuck) {
        let twice = state.also_stuck.iter().chain(&state.stuck).filter(|other| other.step == stuck.step);
        assert_eq!(twice.count(), 1, "a person decides once");
        let phase = if stuck.undo { StepPhase::Undoing } else { StepPhase::Started };
        assert_eq!(state.steps[stuck.step].phase, phase, "what is stuck is under way");
        assert!(!stuck.reason.is_empty());
    }
    let positions = || state.steps.iter().map(|step| step.position).filter(|&position| position > 0);
    let mut sorted: Vec<u32> = positions().collect();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), positions().count(), "no two steps share a position");
    assert!(positions().all(|position| position <= state.position));
}

/// Before a choice is made nothing of its arms has begun, and afterwards at most one of them is not passed by.
fn check_choices(shape: &Shape, state: &SagaState) {
    for choice in (0..shape.steps.len()).filter(|&step| shape.is_choice(step)) {
        let in_arms = || (0..shape.steps.len()).filter(|&step| shape.arms_around(step).any(|arm| arm.choice == choice));
        match state.steps[choice].phase {
            StepPhase::Done | StepPhase::Skipped => {
                let arm_of = |step: usize| shape.arms_around(step).find(|arm| arm.choice == choice);
                let runs = in_arms().filter(|&step| state.steps[step].phase != StepPhase::NotTaken);
                let runs: BTreeSet<usize> = runs.filter_map(arm_of).map(|arm| arm.arm).collect();
                assert!(runs.len() <= 1, "of the choice {choice} run the arms {runs:?}");
            }
            StepPhase::NotTaken => {
                assert!(in_arms().all(|step| state.steps[step].phase == StepPhase::NotTaken));
            }
            // A person ended the saga as it was.
            StepPhase::UndoSkipped => {}
            _ => assert!(in_arms().all(|step| state.steps[step].phase == StepPhase::Ready), "an arm before its choice"),
        }
    }
    for step in state.steps.iter().filter(|step| step.phase == StepPhase::NotTaken) {
        assert_eq!((step.position, step.undo_round, step.in_doubt), (0, 0, false), "what is passed by never runs");
    }
}
