//! The result of a saga, which is made in the commit that completes it.

use super::decider::Decider;
use crate::engine::instance::SagaInstance;
use crate::log;
use crate::machine::{KeptResult, Phase, StepPhase};
use crate::saga::ResultOf;
use crate::step::limited;
use crate::store::Store;

impl<S: Store> Decider<S> {
    /// Makes the result of a saga that this decision completes. All of its steps have taken effect, so a result that cannot
    /// be made changes nothing of that: the state keeps the reason.
    pub(super) fn keep_result(&self, saga: &mut SagaInstance<S>) {
        if saga.state.phase != Phase::Completed {
            // The saga that it is a step of takes it back.
            saga.state.result = None;
            return;
        }
        let Some(result) = &saga.definition.result else { return };
        if saga.state.result.is_some() || saga.state.forced.is_some() {
            return;
        }
        let made = made(saga, result).and_then(|made| self.check_length(made));
        let made = made.and_then(|made| String::from_utf8(made).map_err(|_| "it is not UTF-8".to_owned()));
        let kept = made.map_or_else(|reason| KeptResult::NotMade(limited(reason)), KeptResult::Value);
        if let KeptResult::NotMade(reason) = &kept {
            log::warn!(tenant = saga.tenant.as_str(), saga = %saga.key, reason, "saga completed without its result");
        }
        saga.state.result = Some(Box::new(kept));
    }
}

/// The result of a saga as JSON, or why there is none.
pub(crate) fn made<S: Store>(saga: &SagaInstance<S>, result: &ResultOf) -> Result<Vec<u8>, String> {
    let is_missing = |step: &&str| {
        let phase = saga.definition.shape.position(step).map(|index| saga.state.steps[index].phase);
        phase == Some(StepPhase::Skipped) && saga.outputs.get(step).is_none()
    };
    match result.reads.iter().copied().find(is_missing) {
        Some(step) => Err(format!("an operator skipped its step `{step}` without an output")),
        None => result.make(&saga.input, &saga.outputs),
    }
}
