//! A saga that is driven by its state alone.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use saga_core::machine::{
    self, Command, Deadline, Decision, Event, FailureKind, Phase, SagaState, Shape, Side, StepPhase, Timer, UndoShape,
};

use crate::ledger::check_state;
use crate::shapes::failure;

/// A saga, and what happened to it.
pub(crate) struct Saga {
    pub(crate) shape: Shape,
    pub(crate) state: SagaState,
    pub(crate) undone: BTreeSet<usize>,
    /// The arms that were taken, by the choices that were made here.
    pub(crate) taken: BTreeMap<usize, Option<usize>>,
}

impl Saga {
    /// One that stands there.
    pub(crate) fn at(shape: Shape, state: SagaState) -> Self {
        Self { shape, state, undone: BTreeSet::new(), taken: BTreeMap::new() }
    }

    /// The choices that were made, as their records say.
    pub(crate) fn made(&self) -> Vec<(usize, Option<usize>)> {
        let is_made = |choice: &usize| self.state.steps[*choice].phase == StepPhase::Done;
        self.taken.iter().filter(|(choice, _)| is_made(choice)).map(|(choice, arm)| (*choice, *arm)).collect()
    }

    fn waits_for_list(&self, step: usize) -> bool {
        self.shape.each(step).is_some() && self.state.items_of(step).is_none()
    }

    /// What can become of what is under way.
    fn possible(&self) -> Vec<Event> {
        let mut events = Vec::new();
        for (step, of) in self.state.steps.iter().enumerate().filter(|(step, _)| !self.state.is_stuck_at(*step)) {
            match of.phase {
                StepPhase::Started if self.shape.is_choice(step) => {
                    let arms = (0..self.shape.steps[step].arms.len()).map(Some).chain([None]);
                    events.extend(arms.map(|arm| Event::Chosen { step, arm }));
                    events.push(Event::Blocked { step, reason: "no".to_owned(), in_doubt: false });
                }
                StepPhase::Started if self.waits_for_list(step) => {
                    events.extend((0..4).map(|items| Event::Listed { step, items }));
                }
                StepPhase::Started => {
                    let side = self.shape.side(self.state.base(step));
                    events.extend([Event::Done { step }, Event::Done { step }, Event::Done { step }]);
                    events.push(Event::Rejected { step, failure: failure(step, FailureKind::Rejected) });
                    events.push(Event::Blocked { step, reason: "no".to_owned(), in_doubt: false });
                    if self.shape.effect(&self.state, step).is_outside() && side == Side::Before {
                        events.push(Event::Unknown { step, failure: failure(step, FailureKind::Unknown) });
                    }
                }
                StepPhase::Undoing => {
                    events.extend([
                        Event::Undone { step, informed: true },
                        Event::UndoBlocked { step, reason: "no".to_owned() },
                    ]);
                }
                _ => {}
            }
        }
        if self.state.stuck.is_some() {
            events.push(Event::Operator(machine::Action::Retry));
        }
        events
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Undone { step, .. } => _ = self.undone.insert(step),
            Event::Chosen { step, arm } if self.state.phase == Phase::Running => _ = self.taken.insert(step, arm),
            _ => {}
        }
        let decision = machine::apply(&self.shape, &mut self.state, event).expect("it is stuck where a person acts");
        check_state(&self.shape, &self.state);
        self.check(&decision);
    }

    /// Nothing begins before what it comes after, and nothing is undone before what came after it.
    fn check(&self, decision: &Decision) {
        for command in &decision.commands {
            match *command {
                Command::Do { step } => {
                    let is_passed = |before: usize| self.state.steps[before].is_passed();
                    let mut before = self.shape.predecessors(self.state.base(step));
                    assert!(
                        self.state.phase != Phase::Running || before.all(is_passed),
                        "step {step} begins too early"
                    );
                }
                Command::Undo { step, .. } => {
                    let is_later = |other: usize| {
                        self.shape.is_behind(self.state.base(other), self.state.base(step))
                            && self.state.steps[other].position > self.state.steps[step].position
                    };
                    let mut others = 0..self.state.steps.len();
                    assert!(
                        !others.any(|other| self.stands(other) && is_later(other)),
                        "step {step} is undone too early"
                    );
                }
            }
        }
    }

    /// Whether its effect is there and is to be undone when the saga is.
    pub(crate) fn stands(&self, step: usize) -> bool {
        matches!(self.state.steps[step].phase, StepPhase::Done | StepPhase::Unknown)
            && self.shape.undo(&self.state, step) != UndoShape::NotNeeded
    }

    pub(crate) fn wander(&mut self, choices: &[u16]) {
        for choice in choices {
            let possible = self.possible();
            if possible.is_empty() {
                return;
            }
            self.happen(possible[usize::from(*choice) % possible.len()].clone());
        }
    }

    pub(crate) fn go_on_to_the_end(&mut self) {
        for _ in 0..16 * (self.state.steps.len() + self.shape.steps.len() + 4) {
            let good = self.possible().into_iter().find(|event| {
                let is_chosen = matches!(event, Event::Chosen { .. });
                is_chosen
                    || matches!(
                        event,
                        Event::Done { .. } | Event::Undone { .. } | Event::Listed { .. } | Event::Operator(_)
                    )
            });
            match good {
                Some(event) => self.happen(event),
                None => break,
            }
        }
        assert!(self.state.status().is_ended(), "a saga whose commands succeed ends: {:?}", self.state);
    }
}

/// A saga of that shape, with a deadline, to which so much has happened.
pub(crate) fn begin(shape: Shape, choices: &[u16]) -> Saga {
    let (mut state, _) = machine::start(&shape);
    let deadline = Deadline { timer: Timer::started_with(1), within: Duration::from_mins(1) };
    machine::set_deadline(&shape, &mut state, deadline);
    let mut saga = Saga::at(shape, state);
    saga.wander(choices);
    saga
}
