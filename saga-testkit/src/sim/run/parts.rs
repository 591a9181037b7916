//! What all schedules have in common.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use crate::sim::sagas::{
    BATCH_DEFINITIONS, SimDefinition, SimService, definitions, external_definitions, lock_definitions, mutated,
    remote_definitions, services,
};
use crate::sim::schedule::{Counts, Mutant, Scenario, load_definitions};
use crate::sim::world::Role;

/// What all schedules have in common.
pub(super) struct Parts {
    pub(super) counts: Counts,
    /// The definitions in the order of the counts.
    pub(super) definitions: Arc<[SimDefinition]>,
    pub(super) services: Vec<SimService>,
}

impl Parts {
    pub(super) fn get() -> &'static Self {
        static PARTS: OnceLock<Parts> = OnceLock::new();
        PARTS.get_or_init(|| {
            let wrong = |error: &dyn std::fmt::Display| -> ! { panic!("{error}") };
            let local = definitions().unwrap_or_else(|error| wrong(&error));
            let remote = remote_definitions().unwrap_or_else(|error| wrong(&error));
            let services = services().unwrap_or_else(|error| wrong(&error));
            let external = external_definitions().unwrap_or_else(|error| wrong(&error));
            let load = load_definitions().unwrap_or_else(|error| wrong(&error));
            let locks = lock_definitions().unwrap_or_else(|error| wrong(&error));
            let counts = Counts {
                local: local.len(),
                batch: BATCH_DEFINITIONS,
                remote: remote.len(),
                external: external.len(),
                load: load.len(),
                locks: locks.len(),
            };
            let definitions = local.into_iter().chain(remote).chain(external).chain(load).chain(locks).collect();
            Self { counts, definitions, services }
        })
    }

    /// The definitions as an engine has them, with that mistake or without.
    pub(super) fn definitions(&self, mutant: Option<Mutant>) -> Arc<[SimDefinition]> {
        match mutant {
            None => Arc::clone(&self.definitions),
            Some(mutant) => self.definitions.iter().map(|definition| mutated(definition, mutant)).collect(),
        }
    }

    /// What the processes of each service do, in the order of the services. A process knows the definitions of the schedule
    /// only: to register all there are takes most of the time of a schedule.
    pub(super) fn roles(&self, scenario: &Scenario, definitions: &[SimDefinition]) -> Vec<(Role, u64)> {
        let has_others = !scenario.hosts.is_empty();
        let used: BTreeSet<usize> = scenario.sagas.iter().flat_map(|script| script.variants.iter().copied()).collect();
        let definitions = used.into_iter().map(|definition| definitions[definition].clone()).collect();
        let home = Role { service: 0, definitions, hosts: Vec::new(), has_others };
        let mut roles = vec![(home, scenario.replicas)];
        for (service, replicas) in (1..).zip(&scenario.hosts) {
            let is_last = usize::from(service) == scenario.hosts.len();
            let own = &self.services[usize::from(service) - 1..];
            let hosts = if is_last { own.to_vec() } else { vec![own[0].clone()] };
            roles.push((Role { service, definitions: Arc::new([]), hosts, has_others }, *replicas));
        }
        roles
    }
}
