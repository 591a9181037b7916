//! What a move writes, and whether what is stored of a saga can be read as the new version's.

use super::choice::{arm_output, arm_taken, arms_taken};
use crate::engine::instance::SagaInstance;
use crate::key::StepId;
use crate::machine::{self, Migrated, Route, SagaState, StepPhase};
use crate::saga::{Definition, Plan, StepDefinition};
use crate::step::items_of;
use crate::store::{
    HistoryEntry, HistoryKind, NewRecord, RecordedOutcome, RewrittenRecord, SagaMigration, SagaWithSteps, Status,
    StepRecord, Store, WorkKind,
};

/// Where a saga stands to a migration.
pub(crate) enum MigrationCheck {
    /// It has the new version already.
    There,
    /// It can move.
    CanMove(Box<SagaMigration>),
}

/// What moving this saga writes; or why it cannot move, in words.
pub(crate) fn prepare_move<S: Store>(
    plan: &Plan<S>,
    stored: &SagaWithSteps,
    reason: &str,
) -> Result<MigrationCheck, String> {
    let row = &stored.saga;
    let (from, to) = (&plan.from, &plan.to);
    if row.definition == to.id && row.digest == to.digest {
        return Ok(MigrationCheck::There);
    }
    if row.definition != from.id {
        return Err(format!("it is a saga of {}, and not of {}", row.definition, from.id));
    }
    if row.digest != from.digest {
        return Err(format!("it was started with other steps of {} than those that are given here", from.id));
    }
    let state = SagaState::decode(&row.state, from.steps.len())?;
    if row.status == Status::Stuck && state.stuck.is_none() {
        return Err(
            "it is stuck because it could not be read; let it be tried again on its own version first".to_owned()
        );
    }
    (plan.check_input)(&row.input).map_err(|problem| format!("its input is not one of {}: {problem}", to.id))?;
    let route = Route {
        assumed_done: &plan.passed,
        arms: &plan.arms,
        assumed_arms: &plan.chosen,
        ..Route::new(&from.shape, &to.shape, &plan.places)
    };
    let made = arms_taken(&from.shape, &state, &stored.records)?;
    let mut migrated = machine::migrate(&route, &state, &made).map_err(|problems| problems.join("; "))?;
    keep_given(plan, &row.input, &mut migrated.state);
    let mut move_ = Move { plan, stored, migrated: &migrated, problems: Vec::new(), outputs: Vec::new() };
    let rewritten = move_.rewritten();
    move_.check_under_way();
    move_.check_taken_outputs();
    move_.check_undo();
    move_.check_left_behind();
    if !move_.problems.is_empty() {
        return Err(move_.problems.join("; "));
    }
    let records = migrated.records.iter().map(|record| skipped(plan, stored, record)).collect();
    let history = HistoryEntry {
        saga: row.id,
        step: None,
        kind: HistoryKind::Migrated,
        attempt: 0,
        detail: format!("from {} to {}: {reason}", from.id, to.id),
    };
    Ok(MigrationCheck::CanMove(Box::new(SagaMigration {
        state: migrated.state.encode(),
        rewritten,
        records,
        withdrawn: migrated.withdrawn.iter().map(|timer| timer.row(row.id)).collect(),
        history: vec![history],
        ..SagaMigration::new(row, &to.id, to.digest)
    })))
}

/// A stuck step without a mapping was given the saga's own input, and is tried again with it where the new version has a
/// mapping. A stuck step whose old mapping failed was given nothing, so the new mapping makes its input.
fn keep_given<S: Store>(plan: &Plan<S>, input: &[u8], state: &mut SagaState) {
    let given_own = |place: usize| {
        let old = plan.places.iter().position(|new| *new == Some(place));
        let is_mapped_now = plan.to.steps.get(place).is_some_and(|step| step.input.is_some());
        is_mapped_now && old.is_some_and(|old| plan.from.steps[old].input.is_none())
    };
    for stuck in state.stuck.iter_mut().chain(&mut state.also_stuck) {
        if !stuck.undo && stuck.input.is_none() && given_own(stuck.step) {
            stuck.input = String::from_utf8(input.to_vec()).ok();
        }
    }
}

/// The record of what the saga goes past. Of a choice it says the arm that counts as taken.
fn skipped<S: Store>(plan: &Plan<S>, stored: &SagaWithSteps, record: &machine::Record) -> NewRecord {
    let step = &plan.to.shape.steps[record.step];
    let chosen = plan.chosen.iter().find(|(choice, _)| *choice == record.step);
    let (saga, doing) = (&stored.saga, StepId::doing(step.name));
    NewRecord {
        output: chosen.map(|(_, arm)| arm_output(step, *arm)),
        ..NewRecord::new(saga.id, &saga.tenant, &saga.key, doing, record.outcome, record.position)
    }
}

struct Move<'a, S: Store> {
    plan: &'a Plan<S>,
    stored: &'a SagaWithSteps,
    migrated: &'a Migrated,
    problems: Vec<String>,
    /// The steps of the new version whose outputs are there.
    outputs: Vec<usize>,
}

impl<S: Store> Move<'_, S> {
    fn new_step(&self, place: usize) -> &StepDefinition<S> {
        &self.plan.to.steps[place]
    }

    /// The step of the new version that a stored step id is of, and the old one.
    fn place_of(&self, step: &StepId) -> Option<(usize, usize)> {
        let old = self.plan.from.shape.position(step.step())?;
        Some((old, self.plan.places[old]?))
    }

    /// The records that change, after a look at what is in them.
    fn rewritten(&mut self) -> Vec<RewrittenRecord> {
        let mut rewritten = Vec::new();
        for record in &self.stored.records {
            let Some((old, place)) = self.place_of(&record.step) else { continue };
            let new_name = self.new_step(place).name;
            let to = match record.step.undo_round() {
                _ if record.step.step() == new_name => record.step.clone(),
                Some(round) => StepId::undoing(new_name, round),
                None => StepId::doing(new_name),
            };
            let is_of_step = record.step.undo_round().is_none();
            let is_message = record.step.item() == Some(0) && self.plan.from.shape.awaits_signal(old);
            let output = match is_of_step {
                true if is_message => None,
                true if self.plan.to.shape.is_choice(place) => self.new_arm(record, old, place),
                true => self.new_output(record, old, place),
                false => None,
            };
            let input = match is_of_step {
                true if is_message => self.new_message(record, old, place),
                true => self.new_given(record, old, place),
                false => None,
            };
            if is_of_step && !is_message {
                self.check_given(record, input.as_deref(), place);
            }
            if to != record.step || output.is_some() || input.is_some() {
                rewritten.push(RewrittenRecord { from: record.step.clone(), to, output, input });
            }
        }
        rewritten
    }

    /// What a recorded output becomes, where it changes. It must be readable either way.
    fn new_output(&mut self, record: &StepRecord, old: usize, place: usize) -> Option<Vec<u8>> {
        let is_output = matches!(record.outcome, RecordedOutcome::Done | RecordedOutcome::Skipped);
        let stored = record.output.as_ref().filter(|_| is_output)?;
        let conversion = self.plan.conversions.iter().find(|(step, _)| *step == old);
        let converted = conversion.map(|(_, convert)| convert(stored)).transpose();
        let step = self.new_step(place);
        let check = step.check_list.filter(|_| record.step.item().is_none()).unwrap_or(step.check_output);
        let checked = converted.and_then(|converted| {
            check(converted.as_ref().unwrap_or(stored))?;
            Ok(converted)
        });
        match checked {
            Ok(converted) => {
                self.outputs.push(place);
                converted
            }
            Err(problem) => {
                self.problems.push(format!("what `{}` returned cannot be taken: {problem}", record.step));
                None
            }
        }
    }

    /// What a message becomes that a wait received, where it changes: the wait returns it. The record of a message has the
    /// sender's id as its output.
    fn new_message(&mut self, record: &StepRecord, old: usize, place: usize) -> Option<Vec<u8>> {
        let message = record.input.as_ref()?;
        let conversion = self.plan.conversions.iter().find(|(step, _)| *step == old);
        let converted = conversion.map(|(_, convert)| convert(message)).transpose();
        let checked = converted.and_then(|converted| {
            (self.new_step(place).check_output)(converted.as_ref().unwrap_or(message))?;
            Ok(converted)
        });
        checked.unwrap_or_else(|problem| {
            let name = record.step.step();
            self.problems.push(format!("the signal that `{name}` received cannot be taken: {problem}"));
            None
        })
    }

    /// What a step was given whose record does not say it: the saga's input if the old version has no mapping, else what
    /// that mapping makes. The new version's mapping would make something else.
    fn new_given(&mut self, record: &StepRecord, old: usize, place: usize) -> Option<Vec<u8>> {
        let (from, to) = (&self.plan.from.steps[old], &self.plan.to.steps[place]);
        let may_be_undone = matches!(record.outcome, RecordedOutcome::Done | RecordedOutcome::Unknown);
        let is_known = record.input.is_some() || record.step.item().is_some() || to.check_list.is_some();
        if is_known || !may_be_undone || to.undo.is_none() || (from.input.is_none() && to.input.is_none()) {
            return None;
        }
        let found = SagaInstance::of_row(&self.stored.saga, self.stored.records.clone(), &self.plan.from);
        let given = found.and_then(|mut saga| saga.find_input(old).map(|()| saga.input_of(old).to_vec()));
        given
            .map_err(|problem| {
                self.problems.push(format!("what `{}` was given is not recorded: {problem}", record.step));
            })
            .ok()
    }

    /// The arm that was taken, where it has another name in the new version.
    fn new_arm(&self, record: &StepRecord, old: usize, place: usize) -> Option<Vec<u8>> {
        let (from, to) = (&self.plan.from.shape.steps[old], &self.plan.to.shape.steps[place]);
        let arm = arm_taken(from, std::slice::from_ref(record)).ok()??;
        let new = self.plan.arms[old][arm]?;
        (from.arms[arm] != to.arms[new]).then(|| arm_output(to, Some(new)))
    }

    /// A compensation is given the input of its step.
    fn check_given(&mut self, record: &StepRecord, given: Option<&[u8]>, place: usize) {
        let step = self.new_step(place);
        let may_be_undone = matches!(record.outcome, RecordedOutcome::Done | RecordedOutcome::Unknown);
        let is_list = record.step.item() == Some(0);
        if !is_list && (step.undo.is_none() || !may_be_undone || step.check_list.is_some()) {
            return;
        }
        let given = given.or(record.input.as_deref()).unwrap_or(&self.stored.saga.input);
        if let Err(problem) = check_input(step, given) {
            self.problems.push(format!("what `{}` was given cannot be taken: {problem}", record.step));
        }
    }

    /// What is under way is done with the input that it was given.
    fn check_under_way(&mut self) {
        let mut given: Vec<(StepId, Vec<u8>)> = Vec::new();
        for work in self.stored.work.iter().filter(|work| work.kind == WorkKind::Do && work.step.item().is_none()) {
            // Once its list is there, a step only joins what the items returned.
            let is_join =
                self.place_of(&work.step).is_some_and(|(_, place)| self.migrated.state.items_of(place).is_some());
            if !is_join {
                let input = work.payload.clone().unwrap_or_else(|| self.stored.saga.input.clone());
                given.push((work.step.clone(), input));
            }
        }
        let stuck = self.migrated.state.stuck.iter().chain(&self.migrated.state.also_stuck).filter(|stuck| !stuck.undo);
        for stuck in stuck {
            let Some(step) = self.plan.to.steps.get(stuck.step) else { continue };
            let mapped = stuck.input.as_ref().map(|input| input.as_bytes().to_vec());
            if mapped.is_some() || step.input.is_none() {
                given.push((step.doing.clone(), mapped.unwrap_or_else(|| self.stored.saga.input.clone())));
            }
        }
        for (id, input) in given {
            let place = self.place_of(&id).map(|(_, place)| place).or_else(|| self.plan.to.shape.position(id.step()));
            let Some(place) = place else { continue };
            if let Err(problem) = check_input(self.new_step(place), &input) {
                self.problems.push(format!("what `{id}` was given cannot be taken: {problem}"));
            }
        }
    }

    /// What is still to begin finds the outputs that it takes of steps that are passed.
    fn check_taken_outputs(&mut self) {
        let to: &Definition<S> = &self.plan.to;
        let phase = |step: usize| self.migrated.state.steps[step].phase;
        let is_open = |step| matches!(phase(step), StepPhase::Ready | StepPhase::Started | StepPhase::FannedOut);
        for (index, step) in to.steps.iter().enumerate().filter(|(index, _)| is_open(*index)) {
            for (place, taken) in to.steps[..index].iter().enumerate() {
                let is_missing = phase(place) == StepPhase::Skipped && !self.outputs.contains(&place);
                if is_missing && step.takes_output_of(taken.name) {
                    self.problems.push(format!(
                        "`{}` takes the output of `{}`, which this saga went past without one",
                        step.name, taken.name
                    ));
                }
            }
        }
    }

    /// What an earlier move left out keeps its record, which would be taken for that of a new step of its name.
    fn check_left_behind(&mut self) {
        for record in &self.stored.records {
            let name = record.step.step();
            let is_left_behind = self.plan.from.shape.position(name).is_none();
            if is_left_behind && record.step.undo_round().is_none() && self.plan.to.shape.position(name).is_some() {
                self.problems.push(format!(
                    "`{name}` is new in {}, and this saga did one of that name before an earlier move left it out; call the \
                     new one by another name",
                    self.plan.to.id
                ));
            }
        }
    }

    /// What stands, and what may come to stand, can be undone with the outputs that this saga has.
    fn check_undo(&mut self) {
        let to: &Definition<S> = &self.plan.to;
        let phase = |step: usize| self.migrated.state.steps[step].phase;
        if to.shape.pivot.is_some_and(|pivot| phase(pivot) == StepPhase::Done) {
            return;
        }
        for (index, step) in to.steps.iter().enumerate() {
            let may_be_undone = matches!(
                phase(index),
                StepPhase::Started | StepPhase::FannedOut | StepPhase::Done | StepPhase::Unknown | StepPhase::Undoing
            );
            for taken in step.undo_takes.iter().filter(|_| may_be_undone) {
                let Some(place) = to.shape.position(taken.step) else { continue };
                let is_known =
                    self.outputs.contains(&place) || (taken.is_optional && phase(place) == StepPhase::NotTaken);
                if !is_known {
                    self.problems.push(format!(
                        "the compensation of `{}` takes the output of `{}`, of which this saga has none",
                        step.name, taken.step
                    ));
                }
            }
        }
    }
}

/// Whether bytes are an input of the step, or, where it is done for each of a list, a list of them.
pub(crate) fn check_input<S: Store>(step: &StepDefinition<S>, bytes: &[u8]) -> Result<(), String> {
    if step.check_list.is_none() {
        return (step.check_input)(bytes);
    }
    items_of(bytes)?.into_iter().try_for_each(|item| (step.check_input)(item.get().as_bytes()))
}
