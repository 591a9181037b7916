//! Which events tell of a step that an event asked for.

use std::borrow::Cow;

use crate::engine::instance::{SagaInstance, WorkItem};
use crate::engine::message::{Messages, reason_bytes};
use crate::log;
use crate::machine::{Decision, Event, Phase, StepPhase, failed_by_now};
use crate::saga::{EmittedEvents, EventEncoder};
use crate::step::{Emitted, Rejection};
use crate::store::{Answer, Changes, HistoryEntry, HistoryKind, RecordedOutcome, Store};

/// Adds to what a function emitted what its service says is told of its success.
pub(crate) fn tell_of_success<S: Store>(
    command: &WorkItem<S>,
    told: &EmittedEvents,
    output: Option<&[u8]>,
    emitted: &mut Vec<Emitted>,
) -> Result<(), String> {
    let tellings = if command.is_undo() { &told.undone } else { &told.done };
    let input = command.saga.input_of(command.step_index());
    for telling in tellings {
        let payload = telling.make(input, output.unwrap_or(b"null"))?;
        emitted.push(Emitted { name: Cow::Borrowed(telling.event), payload });
    }
    Ok(())
}

/// What happened to a step, unless it could not be told: then a person is needed, and nothing has been decided.
pub(crate) fn tellable<S: Store>(saga: &SagaInstance<S>, event: Event) -> Event {
    let (Event::Rejected { step, failure } | Event::Failed { step, failure }) = &event else { return event };
    match failures_told(saga, &failure.reason).into_iter().find_map(Result::err) {
        None => event,
        Some(problem) => Event::Blocked { step: *step, reason: problem, in_doubt: false },
    }
}

/// Whether a success that came late is recorded now and stands: the saga goes forward or has completed. What is undone at
/// once emits nothing.
pub(crate) fn stands_late<S: Store>(saga: &SagaInstance<S>, decision: &Decision) -> bool {
    let is_forward = matches!(saga.state.phase, Phase::Running | Phase::Completed);
    is_forward
        && decision.revision.is_some_and(|revision| {
            revision.outcome == RecordedOutcome::Done && saga.state.steps[revision.step].phase == StepPhase::Done
        })
}

type Made = Result<(&'static str, Vec<u8>), String>;

/// The events that tell that a step came to nothing.
fn failures_told<S: Store>(saga: &SagaInstance<S>, reason: &Rejection) -> Vec<Made> {
    let Some(told) = &saga.definition.told else { return Vec::new() };
    let (input, reason) = (saga.input_of(0), reason_bytes(reason));
    let made = |telling: &EventEncoder| telling.make(input, &reason).map(|payload| (telling.event, payload));
    told.failed.iter().map(made).collect()
}

/// Adds the events that a step's move leads to: progress for the service that follows the saga, and the failure if it failed.
pub(crate) fn tell_of_move<S: Store>(
    messages: &Messages,
    saga: &mut SagaInstance<S>,
    before: Option<Answer>,
    changes: &mut Changes,
) {
    changes.messages.extend(messages.report(saga, before));
    let Some(failure) = failed_by_now(before, &saga.state) else { return };
    for told in failures_told(saga, &failure.reason) {
        match told {
            Ok((name, payload)) => changes.messages.push(messages.event_message(saga, name, payload)),
            // Only an operator's decision, and an undo of an unknown step, come here without having been tried.
            Err(problem) => {
                log::error!(tenant = saga.tenant.as_str(), saga = %saga.key, error = problem, "failure event not published");
                let (step, kind) = (Some(saga.doing(0)), HistoryKind::Stuck);
                changes.history.push(HistoryEntry { saga: saga.id, step, kind, attempt: 0, detail: problem });
            }
        }
    }
}
