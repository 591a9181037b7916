//! What the machine knows of a saga definition.

use serde::Serialize;

use super::state::SagaState;

/// What the machine knows of a saga definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Shape {
    /// The steps in order.
    pub steps: Vec<StepShape>,
    /// The step after which a saga only goes forward.
    pub pivot: Option<usize>,
}

/// What the machine knows of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StepShape {
    /// The step's name.
    pub name: &'static str,
    /// Where it takes effect.
    pub effect: Effect,
    /// How it is undone.
    pub undo: UndoShape,
    /// The steps that must be done before it begins, where that is not only the step before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Vec<usize>>,
    /// Set where it runs once per item of a list: at most so many items run concurrently.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub each: Option<usize>,
    /// The names of a choice's arms; at most one of them runs. Empty for a step that is no choice.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arms: Vec<&'static str>,
    /// The innermost arm that it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<ArmOf>,
    /// The name of the saga that it starts, where it is a sub-saga.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub child: Option<String>,
    /// Whether it takes a semantic lock, which has the step's name.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub lock: bool,
    /// Whether each call of it has a lock of the step. No state depends on it, so it may change under one version.
    #[serde(skip)]
    pub locks_calls: bool,
    /// The names of the semantic locks that end when it is done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub releases: Vec<&'static str>,
}

/// An arm of a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ArmOf {
    /// The index of the choice.
    pub choice: usize,
    /// The index among its arms.
    pub arm: usize,
}

/// Where a step takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// In the transaction that records it: it happened if and only if there is a record.
    Transactional,
    /// Outside: it may have taken effect without an answer.
    External,
    /// In another service, which may have done it before its answer arrives.
    Remote {
        /// The service that hosts the step.
        service: &'static str,
    },
    /// Nowhere: the engine itself fans out a list and joins the outputs of its items, makes a choice, sleeps, takes a
    /// semantic lock, or runs a sub-saga.
    Own,
    /// Nowhere: the engine waits for a signal.
    Signal,
}

impl Effect {
    /// Whether the step may take effect without an answer.
    pub const fn is_outside(self) -> bool {
        matches!(self, Self::External | Self::Remote { .. })
    }
}

/// How a step is undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum UndoShape {
    /// It declares that nothing needs to be undone.
    NotNeeded,
    /// It has no compensation and does not declare that it needs none: only the pivot and the steps after it may be so.
    Missing,
    /// Its compensation needs the step's output, so it cannot run for an unknown outcome.
    NeedsOutput,
    /// Its compensation runs for a known and for an unknown outcome.
    TakesUnknown,
}

/// Whether a step comes before or after the pivot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The saga can still be undone.
    Before,
    /// The step is the pivot.
    Pivot,
    /// The saga only goes forward.
    After,
}

impl StepShape {
    /// A step that comes after the one before it.
    pub const fn new(name: &'static str, effect: Effect, undo: UndoShape) -> Self {
        Self {
            name,
            effect,
            undo,
            after: None,
            each: None,
            arms: Vec::new(),
            within: None,
            child: None,
            lock: false,
            locks_calls: false,
            releases: Vec::new(),
        }
    }

    /// Whether it decides which of its arms runs.
    pub fn is_choice(&self) -> bool {
        !self.arms.is_empty()
    }

    /// Whether it only sleeps.
    pub fn is_sleep(&self) -> bool {
        let is_more = self.each.is_some() || self.child.is_some() || self.is_choice() || self.lock;
        self.effect == Effect::Own && !is_more
    }
}

impl Shape {
    /// Whether the step comes before or after the pivot. Without a pivot every step comes before it.
    pub fn side(&self, step: usize) -> Side {
        match self.pivot {
            Some(pivot) if step == pivot => Side::Pivot,
            Some(pivot) if step > pivot => Side::After,
            _ => Side::Before,
        }
    }

    /// The shape of the step, or of the step that it is an item of.
    pub fn of(&self, state: &SagaState, step: usize) -> &StepShape {
        &self.steps[state.base(step)]
    }

    /// Where the step or the item takes effect. A step that runs once per item has no effect itself.
    pub fn effect(&self, state: &SagaState, step: usize) -> Effect {
        match self.steps.get(step) {
            Some(StepShape { each: None, effect, .. }) => *effect,
            Some(_) => Effect::Own,
            None => self.of(state, step).effect,
        }
    }

    /// How the step or the item is undone. A step that runs once per item is undone item by item.
    pub fn undo(&self, state: &SagaState, step: usize) -> UndoShape {
        match self.steps.get(step) {
            Some(StepShape { each: None, undo, .. }) => *undo,
            Some(_) => UndoShape::NotNeeded,
            None => self.of(state, step).undo,
        }
    }

    /// How many items of its list run concurrently, where it runs once per item.
    pub fn each(&self, step: usize) -> Option<usize> {
        self.steps.get(step)?.each
    }

    /// Whether the step decides which of its arms runs.
    pub fn is_choice(&self, step: usize) -> bool {
        self.steps.get(step).is_some_and(StepShape::is_choice)
    }

    /// Whether the step is one of the engine's own that only waits: for a time, a signal, or a semantic lock.
    pub fn is_wait(&self, step: usize) -> bool {
        let is_own = |effect| matches!(effect, Effect::Own | Effect::Signal);
        let is_more = |step: &StepShape| step.each.is_some() || step.is_choice() || step.child.is_some();
        self.steps.get(step).is_some_and(|step| is_own(step.effect) && !is_more(step))
    }

    /// Whether the step waits for a signal.
    pub fn awaits_signal(&self, step: usize) -> bool {
        self.steps.get(step).is_some_and(|step| step.effect == Effect::Signal)
    }

    /// Whether the step takes a semantic lock.
    pub fn is_lock(&self, step: usize) -> bool {
        self.steps.get(step).is_some_and(|step| step.lock)
    }

    /// Whether the step is a sub-saga.
    pub fn is_child(&self, step: usize) -> bool {
        self.steps.get(step).is_some_and(|step| step.child.is_some())
    }

    /// The steps that are passed when a saga begins at that one: all but it and the steps after it.
    pub fn before(&self, step: usize) -> Vec<usize> {
        (0..self.steps.len()).filter(|&other| other != step && !self.is_behind(other, step)).collect()
    }

    /// Whether it has steps that a saga may not take.
    pub fn has_choices(&self) -> bool {
        self.steps.iter().any(StepShape::is_choice)
    }

    /// The arms that the step is in, the innermost first.
    pub fn arms_around(&self, step: usize) -> impl Iterator<Item = ArmOf> {
        std::iter::successors(self.steps[step].within, |arm| self.steps[arm.choice].within)
    }

    /// Whether each step comes after the one before it, so that no two are under way at once.
    pub fn is_sequence(&self) -> bool {
        self.steps.iter().all(|step| step.after.is_none() && step.each.is_none())
    }

    /// The steps that must be done before this one begins.
    pub fn predecessors(&self, step: usize) -> impl Iterator<Item = usize> {
        let after = self.steps[step].after.as_deref();
        let before = if after.is_none() { step.checked_sub(1) } else { None };
        after.unwrap_or_default().iter().copied().chain(before)
    }

    /// The steps that no other comes after.
    pub fn last(&self) -> Vec<usize> {
        let mut is_last = vec![true; self.steps.len()];
        for step in 0..self.steps.len() {
            self.predecessors(step).for_each(|before| is_last[before] = false);
        }
        (0..self.steps.len()).filter(|&step| is_last[step]).collect()
    }

    /// By index, whether that step is certainly done before this one begins.
    pub fn ancestors(&self, step: usize) -> Vec<bool> {
        let mut found = vec![false; self.steps.len()];
        let mut open: Vec<usize> = self.predecessors(step).collect();
        while let Some(before) = open.pop() {
            if !std::mem::replace(&mut found[before], true) {
                open.extend(self.predecessors(before));
            }
        }
        found
    }

    /// Whether the later step only begins when the earlier one is done.
    pub fn is_behind(&self, later: usize, earlier: usize) -> bool {
        self.ancestors(later)[earlier]
    }

    /// Whether the two may be under way at once: they are in two branches of a group.
    pub fn are_concurrent(&self, one: usize, other: usize) -> bool {
        one != other && !self.is_behind(one, other) && !self.is_behind(other, one)
    }

    /// The index of the step of that name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.steps.iter().position(|step| step.name == name)
    }
}
