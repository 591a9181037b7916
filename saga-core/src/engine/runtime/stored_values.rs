//! What is stored of unfinished sagas must be readable as the types of the registered definitions, or they would get stuck.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::engine::context::{BuildError, Settings, UnreadableValues};
use crate::engine::decide::check_input;
use crate::log;
use crate::machine::SagaState;
use crate::saga::{Definition, StepDefinition};
use crate::store::{DefinitionId, RecordedOutcome, SagaWithSteps, StepRecord, Store, StoreError, WorkKind};

/// The step whose value it is (`None` for the saga), and `input`, `output` or `signal`.
type Kind = (Option<&'static str>, &'static str);

/// Refuses to start where values of unfinished sagas cannot be read, or warns of them if the settings say so.
pub(crate) async fn check_stored_values<S: Store>(
    store: &S,
    definitions: &BTreeMap<DefinitionId, Arc<Definition<S>>>,
    settings: &Settings,
) -> Result<(), BuildError> {
    let unreadable = unreadable_values(store, definitions, settings.sampled_sagas_max).await?;
    if !unreadable.is_empty() && !settings.start_with_unreadable_sagas {
        return Err(BuildError::Unreadable(unreadable));
    }
    for values in unreadable {
        log::warn!(
            definition = %DefinitionId { name: values.saga.as_str().into(), version: values.version },
            step = values.step,
            count = values.sagas,
            tenant = values.tenant.as_str(),
            saga = %values.key,
            error = values.problem,
            "stored values unreadable"
        );
    }
    Ok(())
}

/// Reads a sample of the unfinished sagas. Returns each kind of value that cannot be read.
///
/// The sagas of hosted steps are left out: what another service sent says nothing about the types here.
async fn unreadable_values<S: Store>(
    store: &S,
    definitions: &BTreeMap<DefinitionId, Arc<Definition<S>>>,
    limit: usize,
) -> Result<Vec<UnreadableValues>, StoreError> {
    let own = definitions.values().filter(|definition| !definition.is_hosted());
    let own: Vec<DefinitionId> = own.map(|definition| definition.id.clone()).collect();
    if own.is_empty() || limit == 0 {
        return Ok(Vec::new());
    }
    let sample = store.unfinished(&own, limit).await?;
    let sampled = |id: &DefinitionId| sample.iter().filter(|stored| stored.saga.definition == *id).count();
    let mut found: BTreeMap<(&DefinitionId, Kind), UnreadableValues> = BTreeMap::new();
    for stored in &sample {
        let row = &stored.saga;
        let Some(definition) = definitions.get(&row.definition).filter(|known| known.digest == row.digest) else {
            continue;
        };
        for (kind, problem) in problems(definition, stored) {
            let kind_found = found.entry((&row.definition, kind));
            let values =
                kind_found.or_insert_with(|| UnreadableValues::new(row, kind, sampled(&row.definition), problem));
            values.sagas += 1;
        }
    }
    Ok(found.into_values().collect())
}

/// Each kind of value of the saga that cannot be read, with its first problem.
fn problems<S: Store>(definition: &Definition<S>, stored: &SagaWithSteps) -> BTreeMap<Kind, String> {
    let mut values = Values { definition, problems: BTreeMap::new() };
    values.check((None, "input"), (definition.check_input)(&stored.saga.input));
    for record in &stored.records {
        if let Some(index) = definition.shape.position(record.step.step()) {
            values.check_record(record, index);
        }
    }
    values.check_under_way(stored);
    values.problems
}

struct Values<'a, S: Store> {
    definition: &'a Definition<S>,
    problems: BTreeMap<Kind, String>,
}

impl<S: Store> Values<'_, S> {
    fn check(&mut self, kind: Kind, checked: Result<(), String>) {
        if let Err(problem) = checked {
            self.problems.entry(kind).or_insert(problem);
        }
    }

    /// What a step returned, and what its compensation will be given.
    fn check_record(&mut self, record: &StepRecord, index: usize) {
        let (shape, step) = (&self.definition.shape, &self.definition.steps[index]);
        let is_list = record.step.item() == Some(0);
        if record.step.undo_round().is_some() {
            return;
        }
        if is_list && shape.awaits_signal(index) {
            // Of a message the output is the id of its sender.
            if let Some(message) = &record.input {
                self.check((Some(step.name), "signal"), (step.check_output)(message));
            }
            return;
        }
        let has_output = matches!(record.outcome, RecordedOutcome::Done | RecordedOutcome::Skipped);
        if let Some(output) = record.output.as_ref().filter(|_| has_output && !shape.is_choice(index)) {
            let check = step.check_list.filter(|_| record.step.item().is_none()).unwrap_or(step.check_output);
            // What a wait returns is the message itself.
            let value = if shape.awaits_signal(index) { "signal" } else { "output" };
            self.check((Some(step.name), value), check(output));
        }
        if let Some(input) = record.input.as_ref().filter(|_| is_list || takes_input_again(step, record)) {
            self.check((Some(step.name), "input"), check_input(step, input));
        }
    }

    /// What the steps were given that are under way. Their items were given what the record of the list has.
    fn check_under_way(&mut self, stored: &SagaWithSteps) {
        let Ok(state) = SagaState::decode(&stored.saga.state, self.definition.steps.len()) else { return };
        for work in stored.work.iter().filter(|work| work.kind == WorkKind::Do && work.step.item().is_none()) {
            let Some(index) = self.definition.shape.position(work.step.step()) else { continue };
            // Once its list is there, a step only joins what the items returned.
            if let Some(input) = work.payload.as_ref().filter(|_| state.items_of(index).is_none()) {
                let step = &self.definition.steps[index];
                self.check((Some(step.name), "input"), check_input(step, input));
            }
        }
    }
}

/// Whether the compensation of a step may be given the recorded input.
fn takes_input_again<S: Store>(step: &StepDefinition<S>, record: &StepRecord) -> bool {
    let may_be_undone = matches!(record.outcome, RecordedOutcome::Done | RecordedOutcome::Unknown);
    may_be_undone && step.undo.is_some() && step.check_list.is_none()
}
