//! What follows from an attempt: done, another attempt, or a failure.

use std::time::Duration;

use super::decider::Decider;
use crate::engine::instance::{AttemptDetails, AttemptResult, WorkItem};
use crate::machine::{Attempt, Next, after_attempt};
use crate::store::Store;

impl<S: Store> Decider<S> {
    /// What comes after an attempt of this command.
    pub(crate) fn after(&self, command: &WorkItem<S>, attempted: &AttemptResult) -> Next {
        after_attempt(&self.attempt_of(command, &attempted.findings), attempted.ending.clone())
    }

    /// An attempt of this command as the machine sees it.
    pub(crate) fn attempt_of<'a>(&self, command: &'a WorkItem<S>, findings: &AttemptDetails) -> Attempt<'a> {
        let step = command.step_index();
        Attempt {
            step,
            undo: command.is_undo(),
            effect: command.effect(),
            side: command.saga.definition.shape.side(command.saga.state.base(step)),
            policy: &command.options().retry,
            attempts: findings.attempts,
            in_doubt: command.in_doubt,
            informed: command.saga.own_output_of(step).is_some(),
            resolving: command.resolving(findings),
            // While nothing has failed before, the limit for all attempts begins now.
            retrying_for: match command.retrying_for {
                Duration::ZERO => Duration::ZERO,
                retrying_for => retrying_for.saturating_add(findings.took),
            },
            random: self.env.random(),
        }
    }
}
