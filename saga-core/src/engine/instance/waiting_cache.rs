//! Sagas that wait for another service, as this process wrote them last.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::saga_instance::SagaInstance;
use crate::key::{Key, Tenant};
use crate::store::Store;

/// How many sagas one generation holds.
const GENERATION_MAX: usize = 2_048;

/// Inputs, lists and outputs of more bytes than this are not kept.
const KEPT_BYTES_MAX: usize = 16 * 1_024;

/// What this process need not read again when a reply comes. Nothing rests on it: what is decided on an older state is
/// refused by the store, and decided again on what that has.
pub(crate) struct WaitingCache<S: Store>(Mutex<Generations<S>>);

/// What was put in lately, and what before that. When the younger one is full, the older one is forgotten.
struct Generations<S: Store> {
    young: HashMap<(Tenant, Key), SagaInstance<S>>,
    old: HashMap<(Tenant, Key), SagaInstance<S>>,
}

impl<S: Store> WaitingCache<S> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Generations { young: HashMap::new(), old: HashMap::new() }))
    }

    pub(crate) fn put(&self, saga: SagaInstance<S>) {
        if saga.input.len() + saga.outputs.bytes() + saga.inputs.bytes() > KEPT_BYTES_MAX {
            return;
        }
        let mut generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if generations.young.len() >= GENERATION_MAX {
            generations.old = std::mem::take(&mut generations.young);
        }
        generations.young.insert((saga.tenant.clone(), saga.key.clone()), saga);
    }

    pub(crate) fn take(&self, tenant: &Tenant, key: &Key) -> Option<SagaInstance<S>> {
        let name = (tenant.clone(), key.clone());
        let mut generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let old = generations.old.remove(&name);
        generations.young.remove(&name).or(old)
    }
}
