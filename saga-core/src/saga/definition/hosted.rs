//! The definition of a step that a service hosts for others.

use std::sync::OnceLock;

use sha2::{Digest as _, Sha256};

use super::definition::{Definition, StepDefinition};
use super::emitted_events::EmittedEvents;
use crate::machine::{Shape, StepShape, UndoShape};
use crate::store::{DefinitionId, Store};

impl<S: Store> Definition<S> {
    /// Whether it is that of a step which is hosted for others.
    pub(crate) fn is_hosted(&self) -> bool {
        self.id.name.contains('/')
    }

    /// The saga of one step that a service hosts for others. The slash keeps its name apart from every saga's.
    ///
    /// How the step is done and undone may change while it is under way, since there is only one.
    pub(crate) fn hosted(service: &str, shape: StepShape, step: StepDefinition<S>) -> Self {
        let name = format!("{service}/{}", step.name);
        let digest = Sha256::digest(format!("hosted-step-1 {name}")).into();
        let pivot = (shape.undo == UndoShape::Missing).then_some(0);
        let shape = Shape { steps: vec![shape], pivot };
        let locks_calls = step.lock.is_some();
        Self {
            id: DefinitionId { name: name.into(), version: 1 },
            digest,
            shape,
            steps: vec![step],
            width: 1,
            takes_locks: false,
            locks_calls,
            told: None,
            deadline: None,
            max_concurrent: None,
            retention: None,
            result: None,
            check_input: |_| Ok(()),
            fresh: OnceLock::new(),
        }
    }

    /// The same for a step that events ask for: what became of it is told by events.
    pub(crate) fn choreographed(service: &str, shape: StepShape, step: StepDefinition<S>, told: EmittedEvents) -> Self {
        Self { told: Some(Box::new(told)), ..Self::hosted(service, shape, step) }
    }
}
