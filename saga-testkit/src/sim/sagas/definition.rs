use saga_core::Saga;

use super::payload::SimInput;
use crate::checker::Variant;
use crate::sim::world::SimStore;

/// The version that sagas move to.
const SECOND: u32 = 2;

/// A saga definition, and what the checker knows of it.
#[derive(Debug, Clone)]
pub(crate) struct SimDefinition {
    pub(crate) saga: Saga<SimStore, SimInput>,
    /// The version that its sagas may move to. Making it takes longer than many a schedule, so it is made once.
    pub(crate) second: Saga<SimStore, SimInput>,
    pub(crate) variant: Variant,
}

impl SimDefinition {
    /// The definition of a saga. Its second version has the same steps, with the arms in another order.
    pub(crate) fn new(saga: Saga<SimStore, SimInput>, variant: Variant) -> Self {
        Self { second: saga.with_arms_turned().as_version(SECOND), saga, variant }
    }
}
