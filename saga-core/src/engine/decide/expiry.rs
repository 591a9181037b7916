//! How long a saga is kept that ends with this decision.

use crate::engine::instance::SagaInstance;
use crate::machine::Effect;
use crate::saga::Retention;
use crate::store::{Expiry, Status, Store};

/// The expiry of a saga with this status; none if it has not ended, or is a step of another saga.
pub(super) fn expiry_of<S: Store>(
    saga: &SagaInstance<S>,
    status: Status,
    default: Option<Retention>,
) -> Option<Box<Expiry>> {
    if !status.is_ended() {
        return None;
    }
    let retention = saga.definition.retention.or(default)?;
    if saga.key.of_step().is_some() {
        return None;
    }
    let steps = saga.definition.shape.steps.iter();
    let hosts = steps.filter_map(|step| match step.effect {
        Effect::Remote { service } => Some(service.to_owned()),
        _ => None,
    });
    let mut expiry = retention.expiry(status);
    expiry.hosts.extend(hosts);
    expiry.hosts.sort();
    expiry.hosts.dedup();
    Some(Box::new(expiry))
}
