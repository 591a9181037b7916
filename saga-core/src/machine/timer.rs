//! Work rows that only wait for their time: those of the engine's own steps, and that of the saga's deadline. The
//! machine knows them by name, so that it can have them withdrawn.

use serde::{Deserialize, Serialize};

use super::decision::Decision;
use super::shape::{Effect, Shape, StepShape};
use super::state::{SagaState, StepPhase};
use crate::store::{SagaId, WorkId};

/// The name of such a row in the saga's state.
///
/// A saga gets its id, and its first rows get theirs, when its state is written already. Those ids are in a row, so the
/// first rows are named by their distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Timer(i64);

impl Timer {
    /// The row of that number among those that the saga is started with, counted from 0.
    pub const fn started_with(number: usize) -> Self {
        // A saga has a thousand steps at most.
        Self(-1 - number.cast_signed() as i64)
    }

    /// A row that was written later.
    pub const fn of(row: WorkId) -> Self {
        Self(row.0)
    }

    /// The row.
    pub const fn row(self, saga: SagaId) -> WorkId {
        if self.0 < 0 { WorkId(saga.0 - self.0) } else { WorkId(self.0) }
    }
}

impl Shape {
    /// Whether the step is one of the engine's own that only waits: for a time, or for a message.
    pub fn is_idle(&self, step: usize) -> bool {
        let is_own = |effect| matches!(effect, Effect::Own | Effect::Signal);
        let is_more = |step: &StepShape| step.each.is_some() || step.is_choice() || step.child.is_some();
        self.steps.get(step).is_some_and(|step| is_own(step.effect) && !is_more(step))
    }
}

/// The saga turned round: what only waits is over, and nobody waits for its row. There is no record of that: whoever has the
/// row may be writing its own at the same moment, and is told that the saga has moved, not that somebody did its work.
pub(super) fn end_idle(shape: &Shape, state: &mut SagaState, decision: &mut Decision) {
    for step in 0..shape.steps.len() {
        if shape.is_idle(step) && state.steps[step].phase == StepPhase::Started && !state.is_stuck_at(step) {
            decision.withdrawn.extend(state.steps[step].timer.take());
            state.steps[step].phase = StepPhase::Cancelled;
        }
    }
}
