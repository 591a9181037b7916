use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{Mapping, StepRun, StepUndo};
use crate::machine::Shape;
use crate::step::{Needs, StepOptions};
use crate::store::{DefinitionId, Store};

/// A saga definition with its types taken off.
pub(crate) struct Definition<S: Store> {
    pub(crate) id: DefinitionId,
    pub(crate) digest: [u8; 32],
    pub(crate) shape: Shape,
    pub(crate) steps: Vec<StepDefinition<S>>,
}

/// A step in a saga.
pub(crate) struct StepDefinition<S: Store> {
    pub(crate) name: &'static str,
    pub(crate) options: StepOptions,
    pub(crate) run: StepRun<S>,
    pub(crate) undo: Option<(StepUndo<S>, StepOptions)>,
    pub(crate) input: Option<Mapping>,
    /// The steps whose outputs the mapping reads.
    pub(crate) mapped: Vec<&'static str>,
    pub(crate) needs: Needs,
    /// Whether bytes are an output of the step.
    pub(crate) check_output: fn(&[u8]) -> Result<(), String>,
}

impl<S: Store> StepDefinition<S> {
    /// Whether the step, its mapping or its compensation takes the output of the step of that name.
    pub(crate) fn takes_output_of(&self, step: &str) -> bool {
        self.mapped.contains(&step) || self.needs.outputs.iter().any(|needed| needed.step == step)
    }
}

impl<S: Store> Definition<S> {
    pub(super) fn new(name: &str, version: u32, shape: Shape, steps: Vec<StepDefinition<S>>) -> Self {
        let digest = digest(&shape);
        Self { id: DefinitionId { name: Arc::from(name), version }, digest, shape, steps }
    }
}

/// The digest of a shape: what must not change under one version of a definition.
///
/// The rule is versioned by the text in front, so that a later rule is another digest and not a silent mismatch.
fn digest(shape: &Shape) -> [u8; 32] {
    #[derive(Serialize)]
    struct Digested<'a> {
        rule: &'static str,
        shape: &'a Shape,
    }
    let digested = Digested { rule: "saga-shape-1", shape };
    // Names and enums always encode, so the bytes are never the empty default.
    Sha256::digest(serde_json::to_vec(&digested).unwrap_or_default()).into()
}

impl<S: Store> fmt::Debug for Definition<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Definition").field("id", &self.id).field("shape", &self.shape).finish_non_exhaustive()
    }
}
