//! The semantic locks that end with a decision.

use crate::engine::instance::SagaInstance;
use crate::machine::Decision;
use crate::store::{Status, Store, Unlock};

/// The semantic locks that end with a decision. All locks of a family end with the last commit of the outermost saga: its
/// sub-sagas may have to be undone until then.
pub(super) fn unlocked<S: Store>(saga: &SagaInstance<S>, decision: &Decision, status: Status) -> Vec<Unlock> {
    if status.is_ended() && saga.definition.takes_locks && saga.key.of_step().is_none() {
        return vec![Unlock::Owner(saga.tenant.clone(), saga.key.clone())];
    }
    let name = |step: &usize| saga.definition.steps.get(*step).map(|step| step.name.to_owned());
    let names = decision.released.iter().filter_map(name);
    names.map(|name| Unlock::Lock(saga.tenant.clone(), saga.id, name)).collect()
}
