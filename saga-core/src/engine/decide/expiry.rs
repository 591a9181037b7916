//! How long a saga is kept that ends with this decision.

use std::collections::BTreeSet;

use crate::engine::context::Settings;
use crate::engine::instance::SagaInstance;
use crate::machine::Effect;
use crate::saga::Definition;
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
    let retention = saga.definition.retention.or(settings.default_retention)?;
    if saga.key.of_step().is_some() {
        return None;
    }
    let mut hosts = BTreeSet::new();
    add_hosts(&saga.definition, &mut hosts);
    Some(Box::new(Expiry { hosts: hosts.into_iter().map(str::to_owned).collect(), ..retention.expiry(status) }))
}

/// Adds the services that do steps of a saga, or of its sub-sagas.
fn add_hosts<S: Store>(definition: &Definition<S>, hosts: &mut BTreeSet<&'static str>) {
    for step in &definition.shape.steps {
        if let Effect::Remote { service } = step.effect {
            hosts.insert(service);
        }
    }
    for child in definition.steps.iter().filter_map(|step| step.saga()) {
        add_hosts(child, hosts);
    }
}
