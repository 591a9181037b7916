//! What a step is given, where a mapping makes it: the same in every process that decides about the step.
//!
//! A mapping is applied once, when the step's turn comes. What it gave stands in the step's work row until the step is
//! decided, and in its record from then on. A saga that is read from the store knows the records of its steps, but the
//! row of a step only where it was claimed with it.

use std::sync::Arc;

use super::saga_instance::SagaInstance;
use crate::store::{Store, WorkKind, WorkStatus};

impl<S: Store> SagaInstance<S> {
    /// The step's encoded input: the output of its mapping, or the saga's input.
    ///
    /// If a mapping made it and it is not in memory, this is empty: no step is given the whole input of the saga in
    /// place of what its mapping took from it.
    pub(crate) fn input_of(&self, step: usize) -> &[u8] {
        match self.inputs.of(step) {
            Some(input) => input,
            None if self.is_mapped(step) => &[],
            None => &self.input,
        }
    }

    /// Whether it is known what the step was given, or is given.
    fn knows_input_of(&self, step: usize) -> bool {
        !self.is_mapped(step) || self.inputs.of(step).is_some()
    }

    fn is_mapped(&self, step: usize) -> bool {
        self.step(step).input.is_some()
    }

    /// Has the mapping make what the step is given, where that is not known: for a step that begins, and for records of
    /// versions of this crate that did not keep it each time.
    pub(crate) fn find_input(&mut self, step: usize) -> Result<(), String> {
        // A list and a signal have records of their own, and an item finds its input in the list.
        let has_record = self.state.items_of(step).is_some()
            || self.state.item_number(step).is_some()
            || self.state.steps[step].signal.is_some();
        if has_record || self.knows_input_of(step) {
            return Ok(());
        }
        let made = self.made_anew(step)?;
        self.inputs.set(step, made.into());
        Ok(())
    }

    fn made_anew(&self, step: usize) -> Result<Vec<u8>, String> {
        let Some(mapping) = &self.step(step).input else { return Ok(self.input.to_vec()) };
        let made = mapping.apply(&self.input, &self.outputs);
        made.map_err(|problem| format!("its input cannot be made: {problem}"))
    }

    /// What the rows of the steps under way say that they were given.
    pub(crate) fn remember_rows(&mut self, rows: &[WorkStatus]) {
        for row in rows.iter().filter(|row| row.kind == WorkKind::Do) {
            let base = self.definition.shape.position(row.step.step());
            let step = base.and_then(|base| self.state.index_of(base, row.step.item()));
            if let Some(step) = step.filter(|&step| self.state.steps[step].signal.is_none()) {
                self.remember_given(step, row.payload.clone());
            }
        }
    }

    /// What the row of a step says that it was given. One without anything was given the saga's own input, also where the
    /// version that the saga moved to has a mapping.
    pub(super) fn remember_given(&mut self, step: usize, payload: Option<Vec<u8>>) {
        let is_of_list = self.state.items_of(step).is_some() || self.state.item_number(step).is_some();
        if is_of_list || (payload.is_none() && self.knows_input_of(step)) {
            return;
        }
        let given = payload.map_or_else(|| Arc::clone(&self.input), Arc::from);
        self.inputs.set(step, given);
    }
}

/// FNV-1a (Fowler, Noll and Vo), never 0.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step).max(1)
}
