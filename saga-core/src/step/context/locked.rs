//! What a step reads of its lock in its context.

use crate::step::{LockedEntity, StepContext};
use crate::store::Entity;

impl StepContext {
    /// The entities that the step has locked for this call, with their fencing tokens; empty for a step without a lock. A
    /// batch step finds those of each input here.
    pub fn locked(&self) -> &[LockedEntity] {
        &self.parts.locked
    }

    /// The same context with entities that the step has locked, and their fencing tokens.
    #[must_use]
    pub fn with_locked(mut self, entities: impl IntoIterator<Item = (Entity, u64)>) -> Self {
        self.parts.locked = entities.into_iter().map(|(entity, token)| LockedEntity { entity, token }).collect();
        self
    }
}
