//! Orders of events that can happen, against the model: the same commands, the same status, to the end.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use saga_core::machine::{
    self, Action, Command, Deadline, Decision, Event, FailureKind, Phase, Refused, SagaState, Shape, Side, StepPhase,
    Timer, UndoShape,
};
use saga_core::store::{RecordedOutcome, Status, WorkId};

use crate::arms::choices;
use crate::ledger::{Ledger, check_state};
use crate::model::Model;
use crate::shapes::{failure, groups, idlers, lists, rejection, shape};

/// The row of the deadline.
const DEADLINE: Timer = Timer::started_with(0);

struct Run {
    shape: Shape,
    state: SagaState,
    model: Model,
    ledger: Ledger,
    /// Steps that took effect or may have, by what was reported; those that were undone or left to a person are out.
    effects: BTreeSet<usize>,
    undone: BTreeSet<usize>,
}

impl Run {
    fn start(shape: Shape) -> Self {
        let (mut state, commands) = machine::start(&shape);
        let deadline = Deadline { timer: DEADLINE, within: Duration::from_secs(1) };
        let has_deadline = machine::set_deadline(&shape, &mut state, deadline);
        let (model, expected) = Model::start(&shape);
        assert_eq!(commands, expected);
        assert_eq!(has_deadline, model.may_be_called_off());
        for command in commands {
            note_timer(&shape, &mut state, command);
        }
        let (effects, undone) = (BTreeSet::new(), BTreeSet::new());
        Self { shape, state, model, ledger: Ledger::default(), effects, undone }
    }

    /// Everything that can happen now: the answers to what is under way, what an operator may do, and reports of older
    /// owners of calls, which may come at any time and more than once.
    fn possible(&self) -> Vec<Event> {
        let mut events = Vec::new();
        if self.model.is_stuck() {
            let force = |completed| Action::Force { completed, reason: "by hand".to_owned() };
            let actions = [Action::Retry, Action::Skip, force(true), force(false)];
            events.extend(actions.map(Event::Operator));
        }
        if self.model.may_be_called_off() {
            events.push(Event::CancelRequested { reason: rejection("no longer wanted"), has_begun: true });
            events.push(Event::DeadlinePassed);
        }
        for step in (0..self.shape.steps.len()).filter(|step| self.model.may_be_signalled(*step)) {
            events.extend([1, 2].map(|id| Event::Signalled { step, id }));
        }
        if self.model.is_paused() {
            events.extend([Event::Parked { work: 7 }, Event::Resumed]);
        } else if !self.model.status().is_ended() {
            events.push(Event::Paused { by: None, reason: "wait".to_owned() });
        }
        for command in self.model.in_flight() {
            match command {
                Command::Do { step } => self.answers_to_do(step, &mut events),
                Command::Undo { step, .. } => {
                    events.push(Event::UndoBlocked { step, reason: "no".to_owned() });
                    events.extend(self.model.answers_to_undo(step));
                }
            }
        }
        let is_late = |step: &usize| self.is_call(*step) && self.model.has_begun(*step);
        events.extend((0..self.state.steps.len()).filter(is_late).map(|step| Event::LateSuccess { step }));
        events
    }

    fn is_call(&self, step: usize) -> bool {
        self.shape.effect(&self.state, step).is_outside()
    }

    fn answers_to_do(&self, step: usize, events: &mut Vec<Event>) {
        let is_call = self.is_call(step);
        events.push(Event::Cancelled { step });
        if self.shape.is_choice(step) {
            events.push(Event::Blocked { step, reason: "no".to_owned(), in_doubt: false });
            let arms = (0..self.shape.steps[step].arms.len()).map(Some).chain([None]);
            events.extend(arms.map(|arm| Event::Chosen { step, arm }));
            return;
        }
        if self.waits_for_list(step) {
            events.extend((0..5).map(|items| Event::Listed { step, items }));
        } else {
            events.extend([Event::Done { step }, Event::Done { step }]);
        }
        events.push(Event::Rejected { step, failure: failure(step, FailureKind::Rejected) });
        events.push(Event::Blocked { step, reason: "no".to_owned(), in_doubt: is_call });
        if self.shape.side(self.state.base(step)) != Side::After {
            events.push(Event::Failed { step, failure: failure(step, FailureKind::Failed) });
        }
        if is_call {
            events.push(Event::Unknown { step, failure: failure(step, FailureKind::Unknown) });
        }
    }

    fn happen(&mut self, event: &Event) {
        let before = self.state.clone();
        let decision = machine::apply(&self.shape, &mut self.state, event.clone()).expect("only operators are refused");
        let sorted = |mut commands: Vec<Command>| {
            commands.sort_unstable_by_key(|command| match command {
                Command::Do { step } | Command::Undo { step, .. } => *step,
            });
            commands
        };
        let expected = sorted(self.model.on(event));
        assert_eq!(sorted(decision.commands.clone()), expected, "after {event:?} in {before:?}");
        assert_eq!(self.state.status(), self.model.status(), "after {event:?} in {before:?}");
        assert_eq!(decision.became_stuck, self.state.stuck.is_some() && before.stuck != self.state.stuck);
        self.check_timers(event, &before, &decision);
        self.check_signals(&before);
        self.ledger.write(&decision);
        check_state(&self.shape, &self.state);
        match *event {
            Event::Done { step } | Event::LateSuccess { step } | Event::Chosen { step, .. }
                if self.outcome(step) == Some(RecordedOutcome::Done) =>
            {
                self.effects.insert(step);
            }
            Event::Unknown { step, .. } | Event::Blocked { step, .. }
                if self.outcome(step) == Some(RecordedOutcome::Unknown) =>
            {
                self.effects.insert(step);
            }
            Event::Undone { step, .. } => {
                self.undone.insert(step);
            }
            _ => {}
        }
        for command in decision.commands {
            note_timer(&self.shape, &mut self.state, command);
            self.check_command(event, command);
        }
    }

    /// A deadline is waited for exactly as long as it says something. Rows that only wait are withdrawn by the decision after
    /// which nobody waits for them, and by no other: those of steps that the saga turned round without, and the deadline's.
    fn check_timers(&self, event: &Event, before: &SagaState, decision: &Decision) {
        if matches!(event, Event::CancelRequested { .. } | Event::DeadlinePassed) {
            let rest = Decision { withdrawn: Vec::new(), ..decision.clone() };
            assert_eq!(rest, Decision::default(), "what is in flight comes to its end first");
        }
        assert_eq!(self.state.deadline.is_some(), self.model.may_be_called_off() && before.deadline.is_some());
        let mut expected = Vec::new();
        for (step, waited) in before.steps.iter().enumerate() {
            let is_over = self.state.steps[step].timer.is_none();
            let is_its_own = matches!(event, Event::Cancelled { step: own } if *own == step);
            if self.state.steps[step].phase == StepPhase::Cancelled
                && is_over
                && !is_its_own
                && !before.is_stuck_at(step)
            {
                expected.extend(waited.timer);
            }
        }
        if before.deadline.is_some() && self.state.deadline.is_none() && *event != Event::DeadlinePassed {
            expected.push(DEADLINE);
        }
        assert_eq!(decision.withdrawn, expected, "after {event:?} in {before:?}");
    }

    /// Whatever signal comes now is refused where it decides nothing, and the one that is known is told apart.
    fn check_signals(&self, before: &SagaState) {
        for step in 0..self.shape.steps.len() {
            for id in [1, 2] {
                let mut state = self.state.clone();
                let answer = machine::apply(&self.shape, &mut state, Event::Signalled { step, id });
                let expected = match () {
                    () if self.model.knows_signal(step, id) => Some(Refused::Duplicate),
                    () if self.model.may_be_signalled(step) => None,
                    () => Some(Refused::Decided),
                };
                assert_eq!(answer.err(), expected, "signal {id} for step {step} behind {before:?}");
            }
        }
    }

    fn outcome(&self, step: usize) -> Option<RecordedOutcome> {
        self.ledger.outcome(step)
    }

    fn check_command(&self, event: &Event, command: Command) {
        let is_retried = *event == Event::Operator(Action::Retry);
        let is_again = is_retried || matches!(event, Event::Cancelled { .. });
        assert!(!self.state.is_paused() || is_again, "while it is paused nothing new begins: {command:?}");
        match command {
            Command::Do { step } => {
                // A sub-saga is looked at again.
                let is_elsewhere = self.state.steps[step].in_doubt || self.shape.is_child(self.state.base(step));
                let may_begin = self.state.phase == Phase::Running || (is_retried && is_elsewhere);
                assert!(may_begin, "nothing new begins when it compensates");
                let is_passed = |before| {
                    let is_recorded =
                        matches!(self.outcome(before), Some(RecordedOutcome::Done | RecordedOutcome::Skipped));
                    is_recorded || self.state.steps[before].phase == StepPhase::NotTaken
                };
                let base = self.state.base(step);
                assert!(self.shape.predecessors(base).all(is_passed), "step {step} begins before what it comes after");
            }
            Command::Undo { step, .. } => {
                assert!(self.effects.contains(&step), "step {step} is undone, and had no effect");
                assert_eq!(self.state.phase, Phase::Compensating);
            }
        }
    }

    fn waits_for_list(&self, step: usize) -> bool {
        self.shape.each(step).is_some() && self.state.items_of(step).is_none()
    }

    /// Ends the saga with good news only.
    fn go_on_to_the_end(&mut self) {
        for _ in 0..8 * self.state.steps.len() + 8 * self.shape.steps.len() + 4 {
            let event = match (self.state.status(), self.model.in_flight().first()) {
                (Status::Paused, _) => Event::Resumed,
                (Status::Stuck, _) => Event::Operator(Action::Skip),
                (_, Some(&Command::Do { step })) if self.waits_for_list(step) => Event::Listed { step, items: 2 },
                (_, Some(&Command::Do { step })) if self.shape.is_choice(step) => Event::Chosen { step, arm: Some(0) },
                (_, Some(&Command::Do { step })) => Event::Done { step },
                (_, Some(&Command::Undo { step, .. })) => Event::Undone { step, informed: true },
                (_, None) => break,
            };
            self.happen(&event);
        }
        assert!(self.state.status().is_ended(), "a saga whose commands succeed ends: {:?}", self.state);
    }
}

/// The engine writes down which row a step waits for that only waits.
fn note_timer(shape: &Shape, state: &mut SagaState, command: Command) {
    if let Command::Do { step } = command
        && shape.is_wait(step)
    {
        state.steps[step].timer = Some(Timer::of(WorkId(1 + i64::try_from(step).unwrap_or(i64::MAX - 1))));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    /// G5: compensations run for every step that took effect or may have, in the reverse order of their positions, and
    /// for no other; nothing new begins meanwhile; the saga ends completed, compensated or stuck.
    #[test]
    fn g5_the_machine_does_what_the_model_says(
        shape in prop_oneof![shape(), groups(), lists(), choices(), idlers()],
        choices in prop::collection::vec(any::<u16>(), 0..60),
    ) {
        let mut run = Run::start(shape);
        for choice in choices {
            let possible = run.possible();
            if possible.is_empty() {
                break;
            }
            run.happen(&possible[usize::from(choice) % possible.len()]);
        }
        run.go_on_to_the_end();
    }

    /// Without operators and late reports the end can be told from the reports alone: a compensated saga has undone
    /// exactly what took effect or may have, and a completed one has done every step.
    #[test]
    fn g5_at_the_end_everything_is_done_or_nothing_stands(
        shape in prop_oneof![shape(), groups(), lists(), choices(), idlers()],
        choices in prop::collection::vec(any::<u16>(), 0..40),
    ) {
        let mut run = Run::start(shape);
        for choice in choices {
            let mut possible = run.possible();
            // What is stuck while it is paused is seen when it is resumed.
            possible.retain(|event| !matches!(event, Event::LateSuccess { .. } | Event::Operator(_) | Event::Paused { .. }));
            if possible.is_empty() {
                break;
            }
            run.happen(&possible[usize::from(choice) % possible.len()]);
        }
        if run.state.status() != Status::Stuck {
            run.go_on_to_the_end();
        }
        let needs_undo = |step: &usize| run.shape.undo(&run.state, *step) != UndoShape::NotNeeded;
        match run.state.status() {
            Status::Completed => {
                let is_left_out = |step: &usize| run.state.steps[*step].phase == StepPhase::NotTaken;
                let left_out: Vec<usize> = (0..run.state.steps.len()).filter(is_left_out).collect();
                prop_assert_eq!(run.effects.len() + left_out.len(), run.state.steps.len());
                prop_assert!(left_out.iter().all(|step| !run.effects.contains(step)), "an arm runs or is passed by");
            }
            Status::Compensated => {
                let expected: BTreeSet<usize> = run.effects.iter().copied().filter(needs_undo).collect();
                prop_assert_eq!(&run.undone, &expected);
                let pivot = run.shape.pivot.filter(|pivot| run.outcome(*pivot) == Some(RecordedOutcome::Done));
                prop_assert_eq!(pivot, None, "behind the pivot there is no way back");
            }
            Status::Stuck => {}
            other => prop_assert!(false, "{} is no end", other),
        }
    }
}
