//! What a decision leaves behind for later readers: step records, revisions of them, the history.

use crate::engine::instance::{AttemptDetails, SagaInstance};
use crate::key::StepId;
use crate::log;
use crate::machine::{self, Decision, Event, Record, Stuck};
use crate::step::Rejection;
use crate::store::{Changes, HistoryEntry, HistoryKind, NewRecord, RecordedOutcome, RevisedRecord, Store};

pub(crate) fn add_records<S: Store>(
    saga: &mut SagaInstance<S>,
    decision: &Decision,
    findings: &AttemptDetails,
    error: Option<Rejection>,
    changes: &mut Changes,
) {
    for record in &decision.further {
        insert(saga, record, &AttemptDetails::default(), None, changes);
    }
    if let Some((step, position)) = decision.listed {
        insert_list(saga, step, position, changes);
    }
    if let (Some((step, position)), Some(id)) = (decision.signalled, &findings.signal_id) {
        insert_signal(saga, step, position, id, findings.output.clone(), changes);
    }
    if let Some(record) = &decision.record {
        insert(saga, record, findings, error, changes);
    }
}

fn insert<S: Store>(
    saga: &mut SagaInstance<S>,
    record: &Record,
    findings: &AttemptDetails,
    error: Option<Rejection>,
    changes: &mut Changes,
) {
    let order = match record.undo_round {
        None => machine::Command::Do { step: record.step },
        Some(round) => machine::Command::Undo { step: record.step, round, known: true },
    };
    let output = findings.output.clone().filter(|_| record.undo_round.is_none());
    if let Some(output) = &output {
        saga.keep_own_output(record.step, output.clone().into());
    }
    changes.records.push(NewRecord {
        output,
        // A message and JSON text always encode.
        error: error.and_then(|reason| serde_json::to_vec(&reason).ok()),
        input: match record.undo_round {
            // A list has a record of its own.
            None if saga.state.items_of(record.step).is_some() => None,
            None if saga.state.steps[record.step].signal.is_some() => None,
            None => saga.inputs.of(record.step).map(|input| input.to_vec()),
            Some(_) => None,
        },
        attempts: findings.attempts,
        took: findings.took,
        ..new_record(saga, saga.definition.step_id(&saga.state, order), record.outcome, record.position)
    });
}

/// The list that a step is done for: from then on each item finds its input there.
fn insert_list<S: Store>(saga: &SagaInstance<S>, step: usize, position: u32, changes: &mut Changes) {
    let input = saga.inputs.of(step).map(|list| list.to_vec());
    changes.records.push(NewRecord { input, ..own_record(saga, step, position) });
}

/// A signal has a record of its own, so that the next owner of the step's command finds it.
fn insert_signal<S: Store>(
    saga: &SagaInstance<S>,
    step: usize,
    position: u32,
    id: &str,
    payload: Option<Vec<u8>>,
    changes: &mut Changes,
) {
    // Text always encodes.
    let output = serde_json::to_vec(id).ok();
    changes.records.push(NewRecord { output, input: payload, ..own_record(saga, step, position) });
}

/// The record of a list or of a signal, beside that of its step.
fn own_record<S: Store>(saga: &SagaInstance<S>, step: usize, position: u32) -> NewRecord {
    let step = StepId::of_item(saga.step(step).name, 0);
    new_record(saga, step, RecordedOutcome::Done, position)
}

fn new_record<S: Store>(saga: &SagaInstance<S>, step: StepId, outcome: RecordedOutcome, position: u32) -> NewRecord {
    NewRecord::new(saga.id, &saga.tenant, &saga.key, step, outcome, position)
}

pub(crate) fn add_revision<S: Store>(
    saga: &mut SagaInstance<S>,
    decision: &Decision,
    findings: &AttemptDetails,
    changes: &mut Changes,
) {
    let Some(revision) = decision.revision else { return };
    let step = saga.doing(revision.step);
    if let Some(output) = &findings.output {
        saga.keep_own_output(revision.step, output.clone().into());
    }
    changes.history.push(HistoryEntry {
        saga: saga.id,
        step: Some(step.clone()),
        kind: HistoryKind::Late,
        attempt: findings.attempts,
        detail: match revision.outcome {
            RecordedOutcome::Unknown => format!(
                "it was {} when an older owner reported that its call had ended without an answer",
                revision.expected.as_str()
            ),
            _ => format!("it was {} when an older owner reported its success", revision.expected.as_str()),
        },
    });
    let revised = RevisedRecord::new(&saga.tenant, &saga.key, step, revision.expected, revision.outcome);
    changes.revised.push(RevisedRecord { output: findings.output.clone(), ..revised });
}

pub(crate) fn reason_of(event: &Event) -> Option<Rejection> {
    match event {
        Event::Rejected { failure, .. } | Event::Failed { failure, .. } | Event::Unknown { failure, .. } => {
            Some(failure.reason.clone())
        }
        _ => None,
    }
}

/// The commands are gone while a person decides, and what their mappings gave is never computed again.
pub(crate) fn keep_inputs<S: Store>(saga: &mut SagaInstance<S>) {
    let (inputs, lists) = (&saga.inputs, &saga.state.items);
    let (stuck, stuck_too) = (&mut saga.state.stuck, &mut saga.state.also_stuck);
    // A list is recorded, and items find their inputs there.
    let is_listed = |step| lists.iter().any(|items| items.step == step || items.range().contains(&step));
    let is_to_be_kept = |stuck: &&mut Stuck| !stuck.undo && stuck.input.is_none() && !is_listed(stuck.step);
    for stuck in stuck.iter_mut().chain(stuck_too).filter(is_to_be_kept) {
        stuck.input = inputs.of(stuck.step).and_then(|input| String::from_utf8(input.to_vec()).ok());
    }
}

/// What got stuck just now, though its turn with a person may come later.
pub(crate) fn stuck_entry<S: Store>(saga: &SagaInstance<S>, step: usize) -> Option<HistoryEntry> {
    let stuck = saga.state.stuck_at(step)?;
    let order = if stuck.undo {
        let round = saga.state.steps[stuck.step].undo_round;
        machine::Command::Undo { step: stuck.step, round, known: true }
    } else {
        machine::Command::Do { step: stuck.step }
    };
    let step = saga.definition.step_id(&saga.state, order);
    log::warn!(tenant = saga.tenant.as_str(), saga = %saga.key, %step, reason = stuck.reason, "saga stuck");
    Some(HistoryEntry {
        saga: saga.id,
        step: Some(step),
        kind: HistoryKind::Stuck,
        attempt: 0,
        detail: stuck.reason.clone(),
    })
}
