use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;

use super::keep::Kept;
use super::starting::Starting;
use crate::key::{Key, StepId, Tenant};
use crate::machine::{self, Effect, SagaState};
use crate::saga::{Definition, StepDefinition, StepRun, StepUndo};
use crate::step::{NeededOutput, Outputs, StepOptions, items_of};
use crate::store::{
    Claim, ClaimedWork, RecordedOutcome, Reported, SagaId, SagaRow, StepRecord, Store, WorkKind, WorkRef,
};

/// A saga as this process holds it while one of its commands is under way.
pub(super) struct InFlight<S: Store> {
    pub(super) id: SagaId,
    pub(super) tenant: Tenant,
    pub(super) key: Key,
    pub(super) definition: Arc<Definition<S>>,
    pub(super) version: u64,
    pub(super) state: SagaState,
    pub(super) input: Arc<[u8]>,
    pub(super) outputs: Outputs,
    /// The inputs that mappings gave, by the step's index.
    pub(super) inputs: Vec<(usize, Arc<[u8]>)>,
    /// What the item that is under way gave, or the one that was done last.
    pub(super) of_item: Option<(usize, Arc<[u8]>)>,
}

/// A command that this process has leased.
pub(super) struct Command<S: Store> {
    pub(super) saga: InFlight<S>,
    pub(super) work: WorkRef,
    pub(super) order: machine::Command,
    /// Attempts that are written down.
    pub(super) attempts: u32,
    pub(super) maybe: bool,
    pub(super) suspect: bool,
    /// Whether the saga's next steps may run in the same transaction.
    pub(super) runs_on: bool,
    pub(super) retrying_for: Duration,
    pub(super) late: Option<Vec<u8>>,
    /// When the lease ends, by the clock of this process, counted from before the statement that gave it was sent.
    pub(super) lease_until: Duration,
    /// The place in memory that the command fills. Its successor inherits it.
    pub(super) place: Option<OwnedSemaphorePermit>,
    /// Set where the transaction that runs it starts its saga as well.
    pub(super) starting: Option<Box<Starting>>,
    /// Of an exclusive step that is about to be called: the claim that is kept meanwhile.
    pub(super) kept: Option<Kept>,
    /// What an earlier call of it reported last.
    pub(super) reported: Option<Reported>,
}

impl<S: Store> InFlight<S> {
    /// The saga as the store has it.
    pub(super) fn of_row(
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
            outputs: Outputs::new(),
            inputs: Vec::new(),
            of_item: None,
        };
        saga.outputs = earlier_outputs(definition, &saga.state);
        for record in records {
            saga.remember(record);
        }
        saga.note_passed_by();
        Ok(saga)
    }

    /// What the machine decides on after somebody else moved the saga, and what the other branches of a group left since.
    pub(super) fn refresh(&mut self, row: &SagaRow, records: Vec<StepRecord>) -> Result<(), String> {
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

    /// Whether all is here that the command will need of earlier steps. Whoever claims its row reads all of it.
    pub(super) fn knows_all_for(&self, order: machine::Command) -> bool {
        if self.definition.width == 1 {
            return true;
        }
        let (machine::Command::Do { step } | machine::Command::Undo { step, .. }) = order;
        let of = self.step(step);
        // What items gave is read by whoever joins it.
        let is_listed = self.state.items_of(step).is_some();
        let has_input = of.input.is_none()
            || is_listed
            || self.mapped_input_of(self.state.base(step)).is_some()
            || self.mapped_input_of(step).is_some();
        let has_own = match order {
            machine::Command::Undo { known: true, .. } => self.own_output_of(step).is_some(),
            _ => true,
        };
        let is_known = |needed: &NeededOutput| {
            self.outputs.get(needed.step).is_some() || (needed.is_if_taken && self.outputs.is_passed_by(needed.step))
        };
        has_input && has_own && of.needs.outputs.iter().all(is_known)
    }

    /// The saga out of a command that neither runs nor is decided on again.
    pub(super) fn take(&mut self) -> Self {
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
            of_item: self.of_item.take(),
        }
    }

    /// The step, or the one that it is an item of.
    pub(super) fn step(&self, index: usize) -> &StepDefinition<S> {
        &self.definition.steps[self.state.base(index)]
    }

    /// The key that others know: of a step that is hosted for another service, that of the saga which asked for it.
    pub(super) fn outside_key(&self) -> Key {
        if self.definition.is_hosted() { self.key.asked_for() } else { self.key.clone() }
    }

    /// The id of doing the step.
    pub(super) fn doing(&self, step: usize) -> StepId {
        match self.state.item_number(step) {
            None => self.step(step).doing.clone(),
            Some(item) => StepId::of_item(self.step(step).name, item),
        }
    }

    pub(super) fn step_id(&self, order: machine::Command) -> StepId {
        match order {
            machine::Command::Do { step } => self.doing(step),
            machine::Command::Undo { step, round, .. } => self.doing(step).undone(round),
        }
    }

    /// Where the effect of what is called lies.
    pub(super) fn effect_of(&self, order: machine::Command) -> Effect {
        match order {
            machine::Command::Do { step } => self.definition.shape.effect(&self.state, step),
            machine::Command::Undo { step, .. } => match self.step(step).undo {
                Some((StepUndo::Transaction(_), _)) => Effect::Transactional,
                Some((StepUndo::Remote | StepUndo::Child, _)) => self.definition.shape.effect(&self.state, step),
                Some((StepUndo::External(_), _)) | None => Effect::External,
            },
        }
    }

    /// What the step or the item itself returned, where that is here.
    pub(super) fn own_output_of(&self, step: usize) -> Option<&Arc<[u8]>> {
        match self.state.item_number(step) {
            None => self.outputs.get(self.step(step).name),
            Some(_) => self.of_item.as_ref().filter(|(item, _)| *item == step).map(|(_, output)| output),
        }
    }

    pub(super) fn keep_own_output(&mut self, step: usize, output: Arc<[u8]>) {
        let base = self.state.base(step);
        if base == step {
            self.outputs.insert(self.definition.steps[base].name, output);
        } else {
            self.of_item = Some((step, output));
        }
    }

    /// Picks the input of an item out of its list.
    pub(super) fn pick_item(&mut self, step: usize) -> Result<(), String> {
        let Some(number) = self.state.item_number(step) else { return Ok(()) };
        if self.mapped_input_of(step).is_some() {
            return Ok(());
        }
        let base = self.state.base(step);
        let list = self.mapped_input_of(base).ok_or("the list of its items is not there")?;
        let items = items_of(list)?;
        let item = items.get(number as usize - 1).ok_or("its list has fewer items than were counted")?;
        let item = Arc::from(item.get().as_bytes());
        // Of the items before it nobody needs the input any more.
        let state = &self.state;
        self.inputs.retain(|(index, _)| state.item_number(*index).is_none());
        self.set_input(step, item);
        Ok(())
    }

    /// The step's encoded input: what its mapping gave, or the saga's.
    pub(super) fn input_of(&self, step: usize) -> &Arc<[u8]> {
        self.mapped_input_of(step).unwrap_or(&self.input)
    }

    pub(super) fn mapped_input_of(&self, step: usize) -> Option<&Arc<[u8]>> {
        self.inputs.iter().find(|(index, _)| *index == step).map(|(_, input)| input)
    }

    pub(super) fn set_input(&mut self, step: usize, input: Arc<[u8]>) {
        self.inputs.retain(|(index, _)| *index != step);
        self.inputs.push((step, input));
    }

    pub(super) fn remember(&mut self, record: StepRecord) {
        let undone = record.step.undo_round().is_some();
        let Some(step) = self.definition.shape.position(record.step.step()).filter(|_| !undone) else { return };
        // Of items only the list is kept here; each reads its own record where it is undone.
        if record.step.item().is_some_and(|item| item > 0) {
            return;
        }
        if let Some(input) = record.input {
            self.set_input(step, input.into());
        }
        let has_output = matches!(record.outcome, RecordedOutcome::Done | RecordedOutcome::Skipped);
        if let Some(output) = record.output.filter(|_| has_output && record.step.item().is_none()) {
            self.outputs.insert(self.definition.steps[step].name, output.into());
        }
    }
}

/// What a step that an event asked for reads of earlier ones.
pub(super) fn earlier_outputs<S: Store>(definition: &Definition<S>, state: &SagaState) -> Outputs {
    let (Some(told), Some(caller)) = (&definition.told, &state.caller) else { return Outputs::new() };
    let name_of = |step: &str| told.reads.iter().find(|reads| reads.step == step).map(|reads| reads.step);
    let known = |(step, output): &(String, String)| Some((name_of(step)?, Arc::from(output.as_bytes())));
    caller.earlier.iter().filter_map(known).collect()
}

impl<S: Store> Clone for InFlight<S> {
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
            of_item: self.of_item.clone(),
        }
    }
}

impl<S: Store> Command<S> {
    /// The command that a claimed row asks for.
    pub(super) fn of_claim(
        claimed: ClaimedWork,
        mut saga: InFlight<S>,
        lease_until: Duration,
        place: Option<OwnedSemaphorePermit>,
    ) -> Result<Self, String> {
        let name = claimed.step.step();
        let base =
            saga.definition.shape.position(name).ok_or_else(|| format!("its definition has no step `{name}`"))?;
        let step = saga.state.index_of(base, claimed.step.item());
        let step = step.ok_or_else(|| format!("`{}` is no item of its list", claimed.step))?;
        let order = match claimed.kind {
            WorkKind::Do => machine::Command::Do { step },
            WorkKind::Undo => machine::Command::Undo {
                step,
                round: claimed.step.undo_round().unwrap_or(1),
                known: !saga.state.steps[step].maybe,
            },
            WorkKind::Deadline => return Err("its row is of no step".to_owned()),
        };
        // A signal that arrived stands in the place of the time that it had.
        if let Some(payload) = claimed.payload.filter(|_| saga.state.steps[step].signal.is_none()) {
            saga.set_input(step, payload.into());
        }
        saga.pick_item(step)?;
        let row = machine::ClaimedRow {
            command: order,
            effect: saga.effect_of(order),
            undo: saga.definition.shape.undo(&saga.state, step),
            maybe: claimed.maybe,
            suspect: claimed.suspect,
            is_late: claimed.late.is_some(),
            can_be_asked: saga.step(step).resolve.is_some(),
        };
        Ok(Self {
            work: claimed.work,
            order,
            attempts: claimed.attempts,
            maybe: row.may_have_happened(&saga.state),
            suspect: claimed.suspect,
            runs_on: true,
            retrying_for: claimed.retrying_for.unwrap_or_default(),
            late: claimed.late,
            lease_until,
            place,
            starting: None,
            kept: None,
            reported: claimed.reported,
            saga,
        })
    }

    /// The command as the machine sees a claimed row.
    pub(super) fn row(&self) -> machine::ClaimedRow {
        machine::ClaimedRow {
            command: self.order,
            effect: self.effect(),
            undo: self.saga.definition.shape.undo(&self.saga.state, self.step_index()),
            maybe: self.maybe,
            suspect: self.suspect,
            is_late: self.late.is_some(),
            can_be_asked: self.resolve().is_some(),
        }
    }

    pub(super) fn step_index(&self) -> usize {
        match self.order {
            machine::Command::Do { step } | machine::Command::Undo { step, .. } => step,
        }
    }

    pub(super) fn step(&self) -> &StepDefinition<S> {
        self.saga.step(self.step_index())
    }

    /// Whether its handler is called for several commands at once.
    pub(super) fn is_batch(&self) -> bool {
        !self.is_undo() && matches!(self.step().run, StepRun::Batch(_))
    }

    /// Whether two commands are of one step of one definition.
    pub(super) fn is_same_step(&self, other: &Self) -> bool {
        let base = |command: &Self| command.saga.state.base(command.step_index());
        self.is_undo() == other.is_undo()
            && base(self) == base(other)
            && Arc::ptr_eq(&self.saga.definition, &other.saga.definition)
    }

    /// Whether the engine itself is to unfold a list, to join what its items gave, or to decide a choice.
    pub(super) fn is_own(&self) -> bool {
        matches!(self.effect(), Effect::Own | Effect::Signal)
    }

    /// Whether it is about a step that is a saga of its own.
    pub(super) fn is_child(&self) -> bool {
        self.saga.definition.shape.is_child(self.step_index())
    }

    pub(super) fn is_undo(&self) -> bool {
        matches!(self.order, machine::Command::Undo { .. })
    }

    pub(super) fn step_id(&self) -> StepId {
        self.saga.step_id(self.order)
    }

    /// The options of what is called: the step's, or its compensation's.
    pub(super) fn options(&self) -> &StepOptions {
        let step = self.step();
        match &step.undo {
            Some((_, options)) if self.is_undo() => options,
            _ => &step.options,
        }
    }

    /// Where the effect of what is called lies.
    pub(super) fn effect(&self) -> Effect {
        self.saga.effect_of(self.order)
    }

    /// A number that grows with every owner of this step, also from one command of it to the next.
    pub(super) fn fence(&self) -> u64 {
        self.saga.state.steps[self.step_index()].fence + self.work.epoch
    }

    pub(super) fn claim(&self) -> Claim {
        Claim {
            work: self.work,
            saga: self.saga.id,
            tenant: self.saga.tenant.clone(),
            key: self.saga.key.clone(),
            step: self.step_id(),
            kind: if self.is_undo() { WorkKind::Undo } else { WorkKind::Do },
            start: None,
        }
    }
}
