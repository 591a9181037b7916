//! How a step that only waits ends.

use super::decider::Decider;
use crate::engine::instance::{AttemptDetails, AttemptResult, WorkItem, idle_for};
use crate::machine::{Ending, Event, Failure, FailureKind, Next};
use crate::saga::{Idle, Or, StepRun};
use crate::step::Rejection;
use crate::store::Store;

/// What a step returns that only slept.
const NOTHING: &[u8] = b"null";

pub(crate) fn blocked(step: usize, reason: String) -> (Option<Vec<u8>>, Ending, Event) {
    (None, Ending::Undecodable { message: reason.clone() }, Event::Blocked { step, reason, in_doubt: false })
}

/// The only attempt of a step that the engine runs itself.
pub(super) fn ended(output: Option<Vec<u8>>, ending: Ending, event: Event) -> (AttemptResult, Next) {
    let findings = AttemptDetails { output, attempts: 1, ..AttemptDetails::default() };
    (AttemptResult { ending, findings }, Next::Settled(event))
}

impl<S: Store> Decider<S> {
    /// What a step that only waited ends with, as its saga stands now; nothing for any other step.
    pub(crate) fn wait_result(&self, command: &WorkItem<S>) -> Option<(AttemptResult, Next)> {
        let StepRun::Idle(idle) = &command.step().run else { return None };
        let (saga, step) = (&command.saga, command.step_index());
        let settled = |output: Vec<u8>| (Some(output), Ending::Done, Event::Done { step });
        let (output, ending, event) = match idle {
            // The store says what became of it.
            Idle::Lock(_) => return None,
            Idle::For(_) | Idle::Mapped | Idle::Until => settled(NOTHING.to_vec()),
            Idle::Signal(wait) if saga.state.steps[step].signal.is_none() => match &wait.or {
                Or::Reject => {
                    let within = idle_for(command.step(), saga.input_of(step)).unwrap_or_default();
                    let reason = Rejection::new(format!("no `{}` arrived within {within:?}", command.step().name));
                    let failure = Failure { step, kind: FailureKind::Rejected, reason: reason.clone() };
                    (None, Ending::Rejected(reason), Event::Rejected { step, failure })
                }
                Or::Default(default) => {
                    match default.apply(&saga.input, &saga.outputs).and_then(|output| self.check_length(output)) {
                        Ok(output) => settled(output),
                        Err(problem) => blocked(step, format!("what stands for its signal cannot be made: {problem}")),
                    }
                }
            },
            Idle::Signal(_) => match saga.inputs.of(step) {
                Some(signal) => settled(signal.to_vec()),
                None => blocked(step, "its signal was received, and is not there".to_owned()),
            },
        };
        Some(ended(output, ending, event))
    }
}
