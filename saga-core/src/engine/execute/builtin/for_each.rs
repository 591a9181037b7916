//! What the engine does itself for a step that is done for each item of a list: it unfolds the list, and joins what the
//! items gave.

use super::builtin_steps::BuiltinSteps;
use crate::engine::instance::{AttemptDetails, AttemptResult, WorkItem};
use crate::machine::{Ending, Event, Next};
use crate::step::{items_of, list_of};
use crate::store::{RecordedOutcome, StepRecord, Store};

/// Replaces a list of outputs that is too long to be stored, if no step takes it.
const NO_LIST: &[u8] = b"null";

/// Whether a step, a mapping or a compensation of the saga takes the list of what the items gave. Of a saga that is a step
/// of another one that may be the result.
pub(crate) fn is_taken<S: Store>(command: &WorkItem<S>) -> bool {
    let (saga, name) = (&command.saga, command.step().name);
    saga.key.of_step().is_some() || saga.definition.steps.iter().any(|step| step.takes_output_of(name))
}

/// What the items gave, in the order of the list. One that a person went past without an output is left out.
pub(crate) fn joined<S: Store>(command: &WorkItem<S>, records: Vec<StepRecord>, items: usize) -> Vec<u8> {
    let name = command.step().name;
    let mut outputs: Vec<Option<Vec<u8>>> = vec![None; items];
    for record in records {
        let is_of_step = record.step.step() == name && record.step.undo_round().is_none();
        let has_output = matches!(record.outcome, RecordedOutcome::Done | RecordedOutcome::Skipped);
        let place = record.step.item().and_then(|item| item.checked_sub(1)).filter(|_| is_of_step && has_output);
        if let Some(output) = place.and_then(|place| outputs.get_mut(place as usize)) {
            *output = record.output;
        }
    }
    list_of(outputs.iter().flatten().map(Vec::as_slice))
}

impl<S: Store> BuiltinSteps<S> {
    /// The list of the command is there: it is unfolded, or what its items gave is joined. Nothing when the runtime stops
    /// first.
    pub(crate) async fn unfold_or_join(&self, command: &WorkItem<S>) -> Option<(AttemptResult, Next)> {
        let began = self.ctx.env.now();
        let step = command.step_index();
        let made = match command.saga.state.items_of(step) {
            None => self.unfold(command).map(|items| (None, Event::Listed { step, items })),
            Some(items) => {
                let records = self.records_of_items(command).await?;
                let joined = match self.records.decider.check_length(joined(command, records, items.len())) {
                    // No step reads it, and its items have taken effect.
                    Err(_) if !is_taken(command) => Ok(NO_LIST.to_vec()),
                    Err(problem) => Err(format!("the list of what its items gave cannot be stored: {problem}")),
                    Ok(joined) => Ok(joined),
                };
                joined.map(|output| (Some(output), Event::Done { step }))
            }
        };
        let took = self.ctx.env.now().saturating_sub(began);
        let findings =
            AttemptDetails { attempts: command.attempt_number(), took, share: took, ..AttemptDetails::default() };
        Some(match made {
            Ok((output, event)) => {
                let findings = AttemptDetails { output, ..findings };
                (AttemptResult { ending: Ending::Done, findings }, Next::Settled(event))
            }
            Err(reason) => {
                let ending = Ending::Unstorable { message: reason.clone() };
                (AttemptResult { ending, findings }, Next::Settled(Event::Blocked { step, reason, in_doubt: false }))
            }
        })
    }

    fn unfold(&self, command: &WorkItem<S>) -> Result<usize, String> {
        let list = command.saga.mapped_input_of(command.step_index()).ok_or("the list of its items is not there")?;
        let (count, max) = (items_of(list)?.len(), self.ctx.settings.items_max);
        if count > max {
            return Err(format!(
                "its list has {count} items; `items_max` allows {max}, so let each item be a list, or start a saga for each"
            ));
        }
        Ok(count)
    }

    /// What is recorded of the items. All of them are, since the last one gave out this command.
    async fn records_of_items(&self, command: &WorkItem<S>) -> Option<Vec<StepRecord>> {
        let saga = &command.saga;
        self.records
            .committer
            .store_calls
            .retry_store_to_the_end("records_of", || self.ctx.store.records_of(&saga.tenant, &saga.key))
            .await
    }
}
