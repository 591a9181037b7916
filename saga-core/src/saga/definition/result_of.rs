//! How the result of a saga is made.

use crate::saga::Mapping;
use crate::step::StepOutputs;

/// How the result of a saga is made.
#[derive(Clone)]
pub(crate) struct ResultOf {
    mapping: Mapping,
    /// The steps whose outputs it reads.
    pub(crate) reads: Vec<&'static str>,
}

impl ResultOf {
    pub(in crate::saga) fn new(mapping: Mapping, reads: Vec<&'static str>) -> Self {
        Self { mapping, reads }
    }

    /// The result as JSON.
    pub(crate) fn make(&self, input: &[u8], outputs: &StepOutputs) -> Result<Vec<u8>, String> {
        self.mapping.make("the closure of `.returns_from`", input, outputs)
    }
}
