//! Choices: which arm runs is decided in the commit that comes to the choice, and recorded with it.

use std::sync::Arc;

use super::records::add_records;
use crate::engine::instance::{AttemptDetails, AttemptResult, SagaInstance, WorkItem};
use crate::machine::{self, Decision, Ending, Event, Next, SagaState, Shape, StepPhase, StepShape};
use crate::store::{Changes, StepRecord, Store};

/// Makes the choices that the saga has come to. A condition that fails concerns this saga only: it needs a person.
pub(crate) fn choose<S: Store>(saga: &mut SagaInstance<S>, decision: &mut Decision, changes: &mut Changes) {
    if !saga.definition.shape.has_choices() {
        return;
    }
    // The event itself may have been a choice.
    saga.note_passed_by();
    while let Some((place, choice)) = next_choice(saga, decision) {
        decision.commands.remove(place);
        let (event, findings) = made(saga, choice);
        let definition = Arc::clone(&saga.definition);
        // Only what a person does is refused.
        let Ok(follows) = machine::apply(&definition.shape, &mut saga.state, event) else { return };
        add_records(saga, &follows, &findings, None, changes);
        saga.note_passed_by();
        decision.follow_with(follows);
    }
}

/// The choice of the command is made.
pub(crate) fn make_choice<S: Store>(command: &WorkItem<S>) -> (AttemptResult, Next) {
    let (event, findings) = made(&command.saga, command.step_index());
    let findings = AttemptDetails { attempts: command.attempt_number(), ..findings };
    let ending = match &event {
        Event::Blocked { reason, .. } => Ending::Unstorable { message: reason.clone() },
        _ => Ending::Done,
    };
    (AttemptResult { ending, findings }, Next::Settled(event))
}

fn next_choice<S: Store>(saga: &SagaInstance<S>, decision: &Decision) -> Option<(usize, usize)> {
    let choice = |(place, order): (usize, &machine::Command)| match *order {
        machine::Command::Do { step } if saga.definition.shape.is_choice(step) => Some((place, step)),
        _ => None,
    };
    decision.commands.iter().enumerate().find_map(choice)
}

/// What becomes of a choice, and what is recorded of it: the name of the arm that runs.
pub(crate) fn made<S: Store>(saga: &SagaInstance<S>, step: usize) -> (Event, AttemptDetails) {
    match saga.step(step).choose(&saga.input, &saga.outputs) {
        Ok(arm) => {
            let output = arm_output(&saga.definition.shape.steps[step], arm);
            (
                Event::Chosen { step, arm },
                AttemptDetails { output: Some(output), attempts: 1, ..AttemptDetails::default() },
            )
        }
        Err(problem) => {
            let reason = format!("it cannot be decided: {problem}");
            (Event::Blocked { step, reason, in_doubt: false }, AttemptDetails::default())
        }
    }
}

/// An arm as it is recorded: its name, or `null` where none runs.
pub(crate) fn arm_output(choice: &StepShape, arm: Option<usize>) -> Vec<u8> {
    let name = arm.and_then(|arm| choice.arms.get(arm));
    // A name always encodes.
    serde_json::to_vec(&name).unwrap_or_default()
}

/// The arms that were recorded of the choices that the saga made.
pub(crate) fn arms_taken(
    shape: &Shape,
    state: &SagaState,
    records: &[StepRecord],
) -> Result<Vec<(usize, Option<usize>)>, String> {
    let is_made = |&step: &usize| {
        shape.is_choice(step) && matches!(state.steps[step].phase, StepPhase::Done | StepPhase::Skipped)
    };
    (0..shape.steps.len()).filter(is_made).map(|step| Ok((step, arm_taken(&shape.steps[step], records)?))).collect()
}

/// The arm that was recorded of a choice.
pub(crate) fn arm_taken(choice: &StepShape, records: &[StepRecord]) -> Result<Option<usize>, String> {
    let unknown = || format!("nothing is recorded of `{}` that says which of its arms was taken", choice.name);
    let record = records.iter().find(|record| record.step.as_str() == choice.name).ok_or_else(unknown)?;
    // A choice that was skipped without a word took none.
    let Some(output) = &record.output else { return Ok(None) };
    let name: Option<String> = serde_json::from_slice(output).map_err(|_| unknown())?;
    let place = |name: String| choice.arms.iter().position(|arm| *arm == name).ok_or_else(unknown);
    name.map(place).transpose()
}
