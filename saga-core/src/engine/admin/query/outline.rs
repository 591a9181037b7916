//! What the status of a saga needs of its definition. The store keeps it, so a definition that is not registered has one, too.

use serde::{Deserialize, Serialize};

use crate::machine::Shape;
use crate::saga::Definition;
use crate::store::{Store, StoredDefinition};

/// The steps of a definition, by name.
#[derive(Debug, Clone)]
pub(crate) struct Outline {
    pub(crate) steps: Vec<OutlinedStep>,
    /// Whether the definition is registered here.
    pub(crate) is_registered: bool,
}

/// A step, and the steps that it follows.
#[derive(Debug, Clone)]
pub(crate) struct OutlinedStep {
    pub(crate) name: String,
    pub(crate) after: Vec<usize>,
    /// The arms of a choice, by name.
    pub(crate) arms: Vec<String>,
    /// Whether it is a sub-saga.
    pub(crate) is_child: bool,
    /// What it waits for, if it only waits.
    pub(crate) wait: Option<WaitKind>,
    /// Whether its calls have a lock. The store does not keep that, so it is not known of a definition that is not registered.
    pub(crate) locks_calls: bool,
}

/// What a step waits for that only waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WaitKind {
    /// A time.
    Sleep,
    /// A signal, or the end of the time that it may take.
    Signal,
    /// A semantic lock, or the end of the time that it may take.
    SemanticLock,
}

fn wait_of(shape: &Shape, step: usize) -> Option<WaitKind> {
    match step {
        _ if shape.is_lock(step) => Some(WaitKind::SemanticLock),
        _ if shape.awaits_signal(step) => Some(WaitKind::Signal),
        _ => shape.is_wait(step).then_some(WaitKind::Sleep),
    }
}

/// The part of a stored shape that is read.
#[derive(Deserialize)]
struct KeptShape {
    steps: Vec<KeptStep>,
}

#[derive(Deserialize)]
struct KeptStep {
    name: String,
    #[serde(default)]
    after: Option<Vec<usize>>,
    #[serde(default)]
    arms: Vec<String>,
    #[serde(default)]
    child: Option<String>,
    #[serde(default)]
    effect: serde_json::Value,
    #[serde(default)]
    each: Option<usize>,
    #[serde(default)]
    lock: bool,
}

impl KeptStep {
    fn wait(&self) -> Option<WaitKind> {
        let is_sleep = || self.effect == "own" && self.each.is_none() && self.arms.is_empty() && self.child.is_none();
        match &self.effect {
            _ if self.lock => Some(WaitKind::SemanticLock),
            effect if effect == "signal" => Some(WaitKind::Signal),
            _ => is_sleep().then_some(WaitKind::Sleep),
        }
    }
}

impl OutlinedStep {
    /// The step with this index of a definition that is registered.
    fn of(shape: &Shape, index: usize) -> Self {
        let step = &shape.steps[index];
        Self {
            name: step.name.to_owned(),
            after: shape.predecessors(index).collect(),
            arms: step.arms.iter().map(|arm| (*arm).to_owned()).collect(),
            is_child: shape.is_child(index),
            wait: wait_of(shape, index),
            locks_calls: step.locks_calls,
        }
    }

    /// The step with this index as the store keeps it.
    fn of_kept(step: KeptStep, index: usize) -> Self {
        Self {
            wait: step.wait(),
            name: step.name,
            after: step.after.unwrap_or_else(|| index.checked_sub(1).into_iter().collect()),
            arms: step.arms,
            is_child: step.child.is_some(),
            locks_calls: false,
        }
    }
}

impl Outline {
    pub(crate) fn of<S: Store>(definition: &Definition<S>) -> Self {
        let steps = (0..definition.shape.steps.len()).map(|index| OutlinedStep::of(&definition.shape, index));
        Self { steps: steps.collect(), is_registered: true }
    }

    /// Whether the calls of the step, or of the step that has this item, have a lock.
    pub(in crate::engine::admin) fn locks_calls_of(&self, step_or_item: &str) -> bool {
        let name = step_or_item.split('#').next().unwrap_or_default();
        self.steps.iter().any(|step| step.locks_calls && step.name == name)
    }

    /// Of a definition as the store keeps it; `None` if that cannot be read.
    pub(crate) fn of_kept(kept: &StoredDefinition) -> Option<Self> {
        let shape: KeptShape = serde_json::from_str(kept.shape.as_deref()?).ok()?;
        let steps = shape.steps.into_iter().enumerate().map(|(index, step)| OutlinedStep::of_kept(step, index));
        Some(Self { steps: steps.collect(), is_registered: false })
    }
}
