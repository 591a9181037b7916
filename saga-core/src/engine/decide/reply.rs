//! What the reply of another service is decided as.

use crate::machine::{self, AnsweredCommand, Event};
use crate::step::Rejection;
use crate::transport::Answer;

/// The event that follows from the answer of `host` to a command of the step. `reason` is its own, where it gave one.
pub(crate) fn event_of_reply(
    step: usize,
    answered: &AnsweredCommand,
    answer: Answer,
    reason: &Rejection,
    host: &str,
) -> Event {
    machine::event_of_answer(step, answered.undo, answer, reason, host)
}
