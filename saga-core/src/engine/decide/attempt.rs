//! What follows from an attempt: done, another attempt, or a failure.

use std::time::Duration;

use super::decider::Decider;
use crate::engine::instance::{AttemptDetails, AttemptResult, WorkItem};
use crate::machine::{Attempt, Next, Phase, Resolving, after_attempt};
use crate::store::Store;

impl<S: Store> Decider<S> {
    /// What comes after an attempt of this command.
    pub(crate) fn after(&self, command: &WorkItem<S>, attempted: &AttemptResult) -> Next {
        after_attempt(&self.attempt_of(command, &attempted.findings), attempted.ending.clone())
    }

    /// An attempt of this command as the machine sees it.
    pub(crate) fn attempt_of(&self, command: &WorkItem<S>, findings: &AttemptDetails) -> Attempt {
        let step = command.step_index();
        let shape = &command.saga.definition.shape;
        let side = shape.side(command.saga.state.base(step));
        let policy = command.options().retry_policy(&self.settings.retry);
        let first = Attempt::first(step, command.effect(), side, policy, self.env.random());
        let first = Attempt { undo: command.is_undo(), ..first };
        Attempt {
            attempts: findings.attempts,
            in_doubt: command.in_doubt,
            informed: command.saga.own_output_of(step).is_some(),
            resolving: command.resolve().map(|resolve| Resolving {
                policy: resolve.options.retry_policy(&self.settings.retry),
                settle_time: command.step().settle_time(),
                is_compensating: command.saga.state.phase != Phase::Running,
                is_fresh: command.recovered && !findings.is_settled,
            }),
            // While nothing has failed before, the limit for all attempts begins now.
            retrying_for: match command.retrying_for {
                Duration::ZERO => Duration::ZERO,
                retrying_for => retrying_for.saturating_add(findings.took),
            },
            ..first
        }
    }
}
