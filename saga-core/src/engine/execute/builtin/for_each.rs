//! Fans out the list of a for-each step, and joins the outputs of its items.

use super::builtin_steps::BuiltinSteps;
use crate::engine::instance::{AttemptDetails, AttemptResult, WorkItem};
use crate::engine::store_calls::or_unreadable;
use crate::machine::{Ending, Event, Next};
use crate::step::{items_of, list_of};
use crate::store::{RecordedOutcome, StepRecord, Store, StoreError};

/// The joined output if it is too long to be stored and no step reads it.
const NO_LIST: &[u8] = b"null";

/// Whether a step, a mapping, a compensation or the result of the saga reads the joined output.
pub(crate) fn is_taken<S: Store>(command: &WorkItem<S>) -> bool {
    command.saga.definition.takes_output_of(command.step().name)
}

/// The outputs of the items, in the order of the list. An item that an operator skipped without an output is left out.
pub(crate) fn joined<S: Store>(command: &WorkItem<S>, records: Vec<StepRecord>, items: usize) -> Vec<u8> {
    let name = command.step().name;
    let mut outputs: Vec<Option<Vec<u8>>> = vec![None; items];
    for record in records {
        let is_of_step = record.step.step() == name && record.step.undo_round().is_none();
        let has_output = matches!(record.outcome, RecordedOutcome::Done | RecordedOutcome::Skipped);
        let index = record.step.item().and_then(|item| item.checked_sub(1)).filter(|_| is_of_step && has_output);
        if let Some(output) = index.and_then(|index| outputs.get_mut(index as usize)) {
            *output = record.output;
        }
    }
    list_of(outputs.iter().flatten().map(Vec::as_slice))
}

impl<S: Store> BuiltinSteps<S> {
    /// Fans out the list of the command, or joins the outputs if the items are done; `None` if the runtime stops first.
    pub(crate) async fn fan_out_or_join(&self, command: &WorkItem<S>) -> Option<(AttemptResult, Next)> {
        let began = self.ctx.env.now();
        let step = command.step_index();
        let made = match command.saga.state.items_of(step) {
            None => self.fan_out(command).map(|items| (None, Event::Listed { step, items })),
            Some(items) => {
                let joined = match self.records_of_items(command).await? {
                    Ok(records) => self.joined(command, records, items.len()),
                    Err(error) => Err(format!("what its items gave cannot be read: {error}")),
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

    fn fan_out(&self, command: &WorkItem<S>) -> Result<usize, String> {
        let list = command.saga.inputs.of(command.step_index()).ok_or("the list of its items is not there")?;
        let (count, max) = (items_of(list)?.len(), self.ctx.settings.items_max);
        if count > max {
            return Err(format!(
                "its list has {count} items; `items_max` allows {max}, so let each item be a list, or start a saga for each"
            ));
        }
        Ok(count)
    }

    /// The records of all items: this command exists because the last item was recorded.
    async fn records_of_items(&self, command: &WorkItem<S>) -> Option<Result<Vec<StepRecord>, StoreError>> {
        let saga = &command.saga;
        let read = || or_unreadable(self.ctx.store.records_of(&saga.tenant, &saga.key));
        self.records.committer.store_calls.retry_store_to_the_end("records_of", read).await
    }

    fn joined(&self, command: &WorkItem<S>, records: Vec<StepRecord>, items: usize) -> Result<Vec<u8>, String> {
        match self.records.decider.check_length(joined(command, records, items)) {
            // No step reads it, and the items have taken effect.
            Err(_) if !is_taken(command) => Ok(NO_LIST.to_vec()),
            Err(problem) => Err(format!("the list of what its items gave cannot be stored: {problem}")),
            Ok(joined) => Ok(joined),
        }
    }
}
