//! The inputs that mappings gave to the steps of a saga.

use std::sync::Arc;

/// By the index of the step or item. Few are held at a time, so this is a list.
#[derive(Clone, Default)]
pub(crate) struct MappedInputs(Vec<(usize, Arc<[u8]>)>);

impl MappedInputs {
    pub(crate) fn of(&self, step: usize) -> Option<&Arc<[u8]>> {
        self.0.iter().find(|(index, _)| *index == step).map(|(_, input)| input)
    }

    pub(crate) fn set(&mut self, step: usize, input: Arc<[u8]>) {
        self.0.retain(|(index, _)| *index != step);
        self.0.push((step, input));
    }

    /// How many bytes all of them have.
    pub(super) fn bytes(&self) -> usize {
        self.0.iter().map(|(_, input)| input.len()).sum()
    }

    pub(super) fn retain(&mut self, is_kept: impl Fn(usize) -> bool) {
        self.0.retain(|(index, _)| is_kept(*index));
    }
}
