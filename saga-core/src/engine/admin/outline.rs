//! What must be known of a definition to show its sagas: also of one that is not registered, as a store keeps it.

use serde::Deserialize;

use crate::saga::Definition;
use crate::store::{Store, StoredDefinition};

/// The steps of a definition, by name.
#[derive(Debug, Clone)]
pub(crate) struct Outline {
    pub(crate) steps: Vec<OutlinedStep>,
    /// Whether the definition itself is known here.
    pub(crate) is_registered: bool,
}

/// A step, and those that it comes after.
#[derive(Debug, Clone)]
pub(crate) struct OutlinedStep {
    pub(crate) name: String,
    pub(crate) after: Vec<usize>,
    /// The arms of a choice, by name.
    pub(crate) arms: Vec<String>,
    /// Whether it is a saga of its own.
    pub(crate) is_child: bool,
    /// Whether it only waits: for a time or a signal.
    pub(crate) waits: bool,
    /// Whether that is for a signal.
    pub(crate) awaits_signal: bool,
}

/// What is read of a kept shape.
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
}

impl Outline {
    pub(crate) fn of<S: Store>(definition: &Definition<S>) -> Self {
        let steps = definition.steps.iter().enumerate().map(|(index, step)| OutlinedStep {
            name: step.name.to_owned(),
            after: definition.shape.predecessors(index).collect(),
            arms: definition.shape.steps[index].arms.iter().map(|arm| (*arm).to_owned()).collect(),
            is_child: definition.shape.is_child(index),
            waits: definition.shape.is_wait(index),
            awaits_signal: definition.shape.awaits_signal(index),
        });
        Self { steps: steps.collect(), is_registered: true }
    }

    /// As the store keeps it, where it can be read.
    pub(crate) fn of_kept(kept: &StoredDefinition) -> Option<Self> {
        let shape: KeptShape = serde_json::from_str(kept.shape.as_deref()?).ok()?;
        let steps = shape.steps.into_iter().enumerate().map(|(index, step)| OutlinedStep {
            name: step.name,
            after: step.after.unwrap_or_else(|| index.checked_sub(1).into_iter().collect()),
            waits: step.effect == "signal"
                || (step.effect == "own" && step.each.is_none() && step.arms.is_empty() && step.child.is_none()),
            awaits_signal: step.effect == "signal",
            arms: step.arms,
            is_child: step.child.is_some(),
        });
        Some(Self { steps: steps.collect(), is_registered: false })
    }
}
