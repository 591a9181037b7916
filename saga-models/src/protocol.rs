use std::time::Duration;

use saga_core::Rejection;
use saga_core::machine::{Effect, Shape, StepShape, UndoShape};
use saga_core::step::{OnExhausted, RetryPolicy, StepError};

use crate::bounds::{Bounds, Place};
use crate::mutant::Mutant;
use crate::world::{StepKey, World};

/// The protocol within its bounds, and perhaps with a mistake.
#[derive(Debug, Clone)]
pub struct Protocol {
    /// How large it is.
    pub bounds: Bounds,
    /// The mistake in it.
    pub mutant: Option<Mutant>,
    saga: Shape,
    hosted: Shape,
    pub(crate) policy: RetryPolicy,
    pub(crate) reason: Rejection,
}

/// The names of the model's steps, which decide nothing.
const NAMES: [&str; 4] = ["first", "second", "third", "fourth"];

impl Protocol {
    /// The protocol without a mistake.
    ///
    /// # Panics
    /// When the bounds have more than four steps.
    pub fn new(bounds: Bounds) -> Self {
        let step = |(nth, place): (usize, &Place)| {
            let effect = match place {
                Place::Here => Effect::Transactional,
                Place::Outside => Effect::External,
                Place::There => Effect::Remote { service: NAMES[nth] },
            };
            StepShape::new(NAMES[nth], effect, UndoShape::TakesUnknown)
        };
        let saga = Shape { steps: bounds.steps.iter().enumerate().map(step).collect(), pivot: None };
        let hosted = Shape { steps: vec![step((0, &Place::Here))], pivot: None };
        let (base, cap) = (Duration::ZERO, Duration::ZERO);
        let attempts = Some(bounds.attempts);
        let policy = RetryPolicy { attempts, base, cap, give_up_after: None, on_exhausted: OnExhausted::Compensate };
        #[expect(clippy::expect_used, reason = "what was made as a rejection is one")]
        let reason = StepError::reject("declined").rejection().cloned().expect("a rejection");
        Self { bounds, mutant: None, saga, hosted, policy, reason }
    }

    /// The same with a mistake.
    #[must_use]
    pub fn with_mutant(mut self, mutant: Mutant) -> Self {
        self.mutant = Some(mutant);
        self
    }

    pub(crate) fn has(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    /// The saga that a service runs: the coordinator is the first service, the others host a step each.
    pub(crate) fn shape(&self, service: usize) -> &Shape {
        if service == 0 { &self.saga } else { &self.hosted }
    }

    /// Where the effect of a command lies.
    pub(crate) fn effect(&self, service: usize, key: StepKey) -> Effect {
        self.shape(service).steps[key.step].effect
    }

    /// The service that hosts a step of the saga.
    pub(crate) fn host_of(&self, step: usize) -> usize {
        self.bounds.steps[..=step].iter().filter(|place| **place == Place::There).count()
    }

    /// How many services there are.
    pub(crate) fn services(&self) -> usize {
        1 + self.bounds.steps.iter().filter(|place| **place == Place::There).count()
    }

    /// How often a step's effect stands, wherever it lies.
    pub fn stands(&self, world: &World, step: usize) -> i8 {
        match self.bounds.steps[step] {
            Place::Here => world.services[0].stands(step),
            Place::There => world.services[self.host_of(step)].stands(0),
            Place::Outside => i8::from(world.outside.get(&step).is_some_and(|outside| outside.stands)),
        }
    }
}
