//! A saga as this process holds it while one of its commands is under way.

use std::sync::Arc;

use super::mapped_inputs::MappedInputs;
use crate::key::{Key, StepId, Tenant};
use crate::machine::{Phase, SagaState, StepPhase};
use crate::saga::{Definition, StepDefinition};
use crate::step::{StepOutputs, items_of};
use crate::store::{NewSaga, RecordedOutcome, SagaId, SagaRow, StepRecord, Store};

/// A saga as this process holds it while one of its commands is under way.
pub(crate) struct SagaInstance<S: Store> {
    pub(crate) id: SagaId,
    pub(crate) tenant: Tenant,
    pub(crate) key: Key,
    pub(crate) definition: Arc<Definition<S>>,
    pub(crate) version: u64,
    pub(crate) state: SagaState,
    pub(crate) input: Arc<[u8]>,
    pub(crate) outputs: StepOutputs,
    pub(crate) inputs: MappedInputs,
    /// What the item that is under way gave, or the one that was done last.
    pub(crate) item_output: Option<(usize, Arc<[u8]>)>,
}

impl<S: Store> SagaInstance<S> {
    /// A saga that is about to be written, without outputs of earlier steps.
    pub(crate) fn of_new(new: &NewSaga, definition: &Arc<Definition<S>>, state: SagaState) -> Self {
        Self {
            id: new.id,
            tenant: new.tenant.clone(),
            key: new.key.clone(),
            definition: Arc::clone(definition),
            version: 1,
            state,
            input: Arc::from(&*new.input),
            outputs: StepOutputs::new(),
            inputs: MappedInputs::default(),
            item_output: None,
        }
    }

    /// The saga as the store has it.
    pub(crate) fn of_row(
        row: &SagaRow,
        records: Vec<StepRecord>,
        definition: &Arc<Definition<S>>,
    ) -> Result<Self, String> {
        if row.digest != definition.digest {
            return Err(format!(
                "the steps of {} are others than when it was started; run it where they are as they were",
                definition.id
            ));
        }
        let mut saga = Self {
            id: row.id,
            tenant: row.tenant.clone(),
            key: row.key.clone(),
            definition: Arc::clone(definition),
            version: row.version,
            state: SagaState::decode(&row.state, definition.steps.len())?,
            input: row.input.clone().into(),
            outputs: StepOutputs::new(),
            inputs: MappedInputs::default(),
            item_output: None,
        };
        saga.outputs = earlier_outputs(definition, &saga.state);
        for record in records {
            saga.remember(record);
        }
        saga.note_passed_by();
        Ok(saga)
    }

    /// Reloads the machine's state after another process changed the saga, and the records of other branches.
    pub(crate) fn refresh(&mut self, row: &SagaRow, records: Vec<StepRecord>) -> Result<(), String> {
        if row.digest != self.definition.digest {
            return Err(format!("it moved to {}", row.definition));
        }
        self.state = SagaState::decode(&row.state, self.definition.steps.len())?;
        self.version = row.version;
        for record in records {
            self.remember(record);
        }
        self.note_passed_by();
        Ok(())
    }

    /// The saga out of a command that neither runs nor is decided on again.
    pub(crate) fn take(&mut self) -> Self {
        Self {
            id: self.id,
            tenant: self.tenant.clone(),
            key: self.key.clone(),
            definition: Arc::clone(&self.definition),
            version: self.version,
            state: self.state.take(),
            input: Arc::clone(&self.input),
            outputs: std::mem::take(&mut self.outputs),
            inputs: std::mem::take(&mut self.inputs),
            item_output: self.item_output.take(),
        }
    }

    /// The step, or the one that it is an item of.
    pub(crate) fn step(&self, index: usize) -> &StepDefinition<S> {
        self.definition.step(&self.state, index)
    }

    /// The id of doing the step or the item.
    pub(crate) fn doing(&self, step: usize) -> StepId {
        self.definition.doing(&self.state, step)
    }

    /// What the step or the item itself returned, where that is here.
    pub(crate) fn own_output_of(&self, step: usize) -> Option<&Arc<[u8]>> {
        match self.state.item_number(step) {
            None => self.outputs.get(self.step(step).name),
            Some(_) => self.item_output.as_ref().filter(|(item, _)| *item == step).map(|(_, output)| output),
        }
    }

    pub(crate) fn keep_own_output(&mut self, step: usize, output: Arc<[u8]>) {
        let base = self.state.base(step);
        if base == step {
            self.outputs.insert(self.definition.steps[base].name, output);
        } else {
            self.item_output = Some((step, output));
        }
    }

    /// Picks the input of an item out of its list.
    pub(crate) fn pick_item(&mut self, step: usize) -> Result<(), String> {
        let Some(number) = self.state.item_number(step) else { return Ok(()) };
        if self.inputs.of(step).is_some() {
            return Ok(());
        }
        let base = self.state.base(step);
        let list = self.inputs.of(base).ok_or("the list of its items is not there")?;
        let items = items_of(list)?;
        let item = items.get(number as usize - 1).ok_or("its list has fewer items than were counted")?;
        let item = Arc::from(item.get().as_bytes());
        // The inputs of the items before it are not needed any more.
        let state = &self.state;
        self.inputs.retain(|index| state.item_number(index).is_none());
        self.inputs.set(step, item);
        Ok(())
    }

    /// Records, for later readers of outputs, which steps never run.
    pub(crate) fn note_passed_by(&mut self) {
        for (step, state) in self.definition.steps.iter().zip(&self.state.steps) {
            if state.phase == StepPhase::NotTaken {
                self.outputs.pass_by(step.name);
            }
        }
    }

    pub(crate) fn remember(&mut self, record: StepRecord) {
        let undone = record.step.undo_round().is_some();
        let Some(step) = self.definition.shape.position(record.step.step()).filter(|_| !undone) else { return };
        // Of items only the list is kept here; each reads its own record where it is undone.
        if record.step.item().is_some_and(|item| item > 0) {
            return;
        }
        if let Some(input) = record.input {
            self.inputs.set(step, input.into());
        }
        let has_output = matches!(record.outcome, RecordedOutcome::Done | RecordedOutcome::Skipped);
        if let Some(output) = record.output.filter(|_| has_output && record.step.item().is_none()) {
            self.outputs.insert(self.definition.steps[step].name, output.into());
        }
    }
}

/// A hosted step that is about to be written.
pub(crate) fn in_flight<S: Store>(definition: &Arc<Definition<S>>, new: &NewSaga) -> Result<SagaInstance<S>, String> {
    let state = SagaState::decode(&new.state, definition.steps.len());
    let state = state?;
    debug_assert_eq!(state.phase, Phase::Running);
    let outputs = earlier_outputs(definition, &state);
    Ok(SagaInstance { outputs, ..SagaInstance::of_new(new, definition, state) })
}

/// What a hosted step reads of earlier ones: the semantic locks that its command carries, or, if an event asked for it, outputs.
pub(crate) fn earlier_outputs<S: Store>(definition: &Definition<S>, state: &SagaState) -> StepOutputs {
    let Some(caller) = &state.caller else { return StepOutputs::new() };
    let told = definition.told.iter().flat_map(|told| told.reads.iter().map(|reads| reads.step));
    let locks = definition.steps.iter().flat_map(|step| &step.needs.outputs).filter(|needed| needed.is_lock);
    let names: Vec<&'static str> = told.chain(locks.clone().map(|needed| needed.step)).collect();
    let name_of = |step: &str| names.iter().find(|name| **name == step).copied();
    let known = |(step, output): &(String, String)| Some((name_of(step)?, Arc::from(output.as_bytes())));
    let mut outputs: StepOutputs = caller.earlier.iter().filter_map(known).collect();
    for lock in locks.filter(|lock| lock.is_optional) {
        if outputs.get(lock.step).is_none() {
            outputs.pass_by(lock.step);
        }
    }
    outputs
}

impl<S: Store> Clone for SagaInstance<S> {
    fn clone(&self) -> Self {
        Self {
            id: self.id,
            tenant: self.tenant.clone(),
            key: self.key.clone(),
            definition: Arc::clone(&self.definition),
            version: self.version,
            state: self.state.clone(),
            input: Arc::clone(&self.input),
            outputs: self.outputs.clone(),
            inputs: self.inputs.clone(),
            item_output: self.item_output.clone(),
        }
    }
}
