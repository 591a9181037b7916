//! What clients may start, and what each step is to do.

use serde::{Deserialize, Serialize};

/// A tenant's key, and what clients may try to start under it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SagaPlan {
    /// Whose it is.
    pub tenant: String,
    /// The saga's key.
    pub key: String,
    /// Whether its client takes it back, whatever becomes of it.
    pub is_taken_back: bool,
    /// The saga whose key it has, and which is deleted before this one starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reborn_of: Option<u32>,
    /// When it begins, and how long it has.
    #[serde(default)]
    pub time: SagaTime,
    /// The payloads and definitions that clients offer under this key. At most one of them is ever accepted.
    pub variants: Vec<Variant>,
}

/// When a saga begins, and how long it has, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SagaTime {
    /// How long after its start it begins.
    pub begins_in: u64,
    /// How long it then has until its pivot.
    pub within: Option<u64>,
}

/// What stands between a step and those that it comes after, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nap {
    /// How long it lasts.
    pub lasts: u64,
    /// The moment of the run at which it ends, if that is later.
    pub until: u64,
}

/// One thing that a client may start under a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variant {
    /// The definition's name.
    pub definition: String,
    /// Its steps in order.
    pub steps: Vec<StepPlan>,
}

/// A step as its author wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepPlan {
    /// Its name.
    pub name: String,
    /// What it acts on.
    pub kind: Kind,
    /// The number of the service that does it, where that is not the saga's own.
    pub host: Option<u8>,
    /// What undoes it.
    pub undo: Option<UndoPlan>,
    /// The steps that it comes after, where that is not just the one before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Vec<u8>>,
    /// The arms of choices that it stands in, the outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arms: Vec<ArmPlan>,
    /// Whether it is a step of the saga that is a step of this one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_sub: bool,
    /// The nap before it.
    #[serde(default)]
    pub nap: Nap,
    /// The earlier step whose output it takes.
    pub reads: Option<u8>,
    /// Whether the saga only goes forward once it is done.
    pub is_pivot: bool,
    /// Whether no two calls of it ever run at once.
    #[serde(default)]
    pub is_exclusive: bool,
    /// The number of the entity that each call of it locks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locks: Option<u8>,
    /// The numbers of the entities that the saga has with semantic locks when it runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<u8>,
    /// How many events it emits each time it runs.
    pub emits: u8,
    /// How often it may be called in all, for one turn of its policy.
    pub attempts: u32,
}

/// An arm of a choice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArmPlan {
    /// The choice's name.
    pub choice: String,
    /// The arm's name.
    pub arm: String,
}

/// A compensation as its author wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoPlan {
    /// What it acts on.
    pub kind: Kind,
    /// Whether it can run when it is unknown if the step took effect.
    pub takes_unknown: bool,
    /// How many events it emits each time it runs.
    pub emits: u8,
    /// How often it may be called in all, for one turn of its policy.
    pub attempts: u32,
}

/// What a step acts on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// The database, in the step's transaction.
    Transactional,
    /// A service outside that honours keys.
    External,
}

/// Whether a step is done or undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Op {
    /// The step itself.
    Do,
    /// Its compensation.
    Undo,
}

/// Whether the later step only begins when the earlier one is done.
pub(crate) fn is_behind(steps: &[StepPlan], later: u8, earlier: u8) -> bool {
    let mut open = vec![later];
    let mut seen = Vec::new();
    while let Some(step) = open.pop() {
        let Some(plan) = steps.get(usize::from(step)).filter(|_| !seen.contains(&step)) else { continue };
        seen.push(step);
        let before = match &plan.after {
            Some(after) => after.clone(),
            None => step.checked_sub(1).into_iter().collect(),
        };
        if before.contains(&earlier) {
            return true;
        }
        open.extend(before);
    }
    false
}
