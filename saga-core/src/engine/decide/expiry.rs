//! How long a saga is kept that ends with this decision.

use crate::engine::context::Settings;
use crate::engine::instance::SagaInstance;
use crate::store::{Expiry, Status, Store};

/// The expiry of a saga with this status: none if it has not ended, if it is kept for ever, or if it is a step of another
/// saga and goes with that one.
pub(super) fn expiry_of<S: Store>(saga: &SagaInstance<S>, status: Status, settings: &Settings) -> Option<Box<Expiry>> {
    if !status.is_ended() {
        return None;
    }
    if saga.definition.told.is_some() {
        return settings.events_retention.map(|retention| Box::new(Expiry::deleted_in(retention)));
    }
    if saga.key.of_step().is_some() {
        return None;
    }
    saga.definition.expiry(status, settings.default_retention).map(Box::new)
}
