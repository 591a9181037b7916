use serde::Serialize;

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
    /// Where its effect lies.
    pub effect: Effect,
    /// How it is undone.
    pub undo: UndoShape,
}

/// Where the effect of a step lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// In the transaction that records it: it happened if and only if there is a record.
    Transactional,
    /// Outside: it may have happened without an answer.
    External,
    /// In another service, which may have done it before its answer is here.
    Remote {
        /// The service that hosts the step.
        service: &'static str,
    },
}

impl Effect {
    /// Whether it may have happened without an answer.
    pub const fn is_outside(self) -> bool {
        matches!(self, Self::External | Self::Remote { .. })
    }
}

/// How a step is undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum UndoShape {
    /// It says that nothing needs to be undone.
    NotNeeded,
    /// There is none, and nobody said that none is needed: only the pivot and what stands behind it may be so.
    Missing,
    /// Its compensation needs the step's output, so it cannot run for an unknown outcome.
    NeedsOutput,
    /// Its compensation runs for a known and for an unknown outcome.
    TakesUnknown,
}

/// Where a step stands to the pivot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The saga can still be undone.
    Before,
    /// The step is the pivot.
    Pivot,
    /// The saga only goes forward.
    After,
}

impl Shape {
    /// Where the step stands to the pivot. Without a pivot every step stands before it.
    pub fn side(&self, step: usize) -> Side {
        match self.pivot {
            Some(pivot) if step == pivot => Side::Pivot,
            Some(pivot) if step > pivot => Side::After,
            _ => Side::Before,
        }
    }

    /// The index of the step of that name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.steps.iter().position(|step| step.name == name)
    }
}
