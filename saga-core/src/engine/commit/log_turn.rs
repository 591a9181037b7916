//! The log event of a saga that went into another phase.

use crate::engine::instance::SagaInstance;
use crate::log;
use crate::machine::Phase;
use crate::store::Store;

/// Logs that a saga is in this phase now.
pub(super) fn log_turn<S: Store>(instance: &SagaInstance<S>, phase: Phase) {
    let (tenant, saga, definition) = (instance.tenant.as_str(), &instance.key, &instance.definition.id);
    match phase {
        // An operator has made an ended saga go on.
        Phase::Running => log::info!(tenant, %saga, %definition, "saga running again"),
        Phase::Compensating => {
            let failure = instance.state.failure.as_ref();
            let step = failure.map(|failure| instance.doing(failure.step).to_string()).unwrap_or_default();
            let reason = failure.map_or("", |failure| failure.reason.message());
            log::info!(tenant, %saga, %definition, step, reason, "saga compensating");
        }
        Phase::Completed => log::debug!(tenant, %saga, %definition, "saga completed"),
        Phase::Compensated => log::info!(tenant, %saga, %definition, "saga compensated"),
    }
}
