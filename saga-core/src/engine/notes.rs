//! What a decision leaves behind for later readers: step records, revisions of them, the history.

use super::command::{InFlight, step_id};
use super::prepared::Findings;
use crate::machine::{self, Decision, Event, Record};
use crate::step::Rejection;
use crate::store::{Changes, HistoryEntry, HistoryKind, NewRecord, RevisedRecord, Store};

pub(super) fn note_record<S: Store>(
    saga: &mut InFlight<S>,
    decision: &Decision,
    findings: &Findings,
    error: Option<Rejection>,
    changes: &mut Changes,
) {
    for record in &decision.further {
        insert(saga, record, &Findings::default(), None, changes);
    }
    if let Some(record) = &decision.record {
        insert(saga, record, findings, error, changes);
    }
}

fn insert<S: Store>(
    saga: &mut InFlight<S>,
    record: &Record,
    findings: &Findings,
    error: Option<Rejection>,
    changes: &mut Changes,
) {
    let order = match record.undo_round {
        None => machine::Command::Do { step: record.step },
        Some(round) => machine::Command::Undo { step: record.step, round, known: true },
    };
    let output = findings.output.clone().filter(|_| record.undo_round.is_none());
    if let Some(output) = &output {
        saga.outputs.insert(saga.definition.steps[record.step].name, output.clone().into());
    }
    changes.records.push(NewRecord {
        saga: saga.id,
        tenant: saga.tenant.clone(),
        key: saga.key.clone(),
        step: step_id(&saga.definition, order),
        outcome: record.outcome,
        output,
        // A message and JSON text always encode.
        error: error.and_then(|reason| serde_json::to_vec(&reason).ok()),
        input: match record.undo_round {
            None => saga.mapped_input_of(record.step).map(|input| input.to_vec()),
            Some(_) => None,
        },
        position: record.position,
        attempts: findings.attempts,
        took: findings.took,
    });
}

pub(super) fn note_revision<S: Store>(
    saga: &mut InFlight<S>,
    decision: &Decision,
    findings: &Findings,
    changes: &mut Changes,
) {
    let Some(revision) = decision.revision else { return };
    let name = saga.definition.steps[revision.step].name;
    let step = step_id(&saga.definition, machine::Command::Do { step: revision.step });
    if let Some(output) = &findings.output {
        saga.outputs.insert(name, output.clone().into());
    }
    changes.history.push(HistoryEntry {
        saga: saga.id,
        step: Some(step.clone()),
        kind: HistoryKind::Late,
        attempt: findings.attempts,
        detail: format!("it was {} when an older owner reported its success", revision.expected.as_str()),
    });
    changes.revised.push(RevisedRecord {
        tenant: saga.tenant.clone(),
        key: saga.key.clone(),
        step,
        expected: revision.expected,
        outcome: revision.outcome,
        output: findings.output.clone(),
    });
}

pub(super) fn reason_of(event: &Event) -> Option<Rejection> {
    match event {
        Event::Rejected { failure, .. } | Event::Failed { failure, .. } | Event::Unknown { failure, .. } => {
            Some(failure.reason.clone())
        }
        _ => None,
    }
}

/// The commands are gone while a person decides, and what their mappings gave is never computed again.
pub(super) fn keep_inputs<S: Store>(saga: &mut InFlight<S>) {
    let inputs = &saga.inputs;
    let (stuck, stuck_too) = (&mut saga.state.stuck, &mut saga.state.stuck_too);
    for stuck in stuck.iter_mut().chain(stuck_too).filter(|stuck| !stuck.undo && stuck.input.is_none()) {
        let input = inputs.iter().find(|(step, _)| *step == stuck.step);
        stuck.input = input.and_then(|(_, input)| String::from_utf8(input.to_vec()).ok());
    }
}

/// What got stuck just now, though its turn with a person may come later.
pub(super) fn stuck_entry<S: Store>(saga: &InFlight<S>, step: usize) -> Option<HistoryEntry> {
    let stuck = saga.state.stuck_at(step)?;
    let order = if stuck.undo {
        let round = saga.state.steps[stuck.step].undo_round;
        machine::Command::Undo { step: stuck.step, round, known: true }
    } else {
        machine::Command::Do { step: stuck.step }
    };
    tracing::warn!(saga = %saga.key, step = saga.step(stuck.step).name, reason = stuck.reason, "the saga is stuck");
    Some(HistoryEntry {
        saga: saga.id,
        step: Some(step_id(&saga.definition, order)),
        kind: HistoryKind::Stuck,
        attempt: 0,
        detail: stuck.reason.clone(),
    })
}
