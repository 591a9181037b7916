//! What all components share: the store, the transport, the environment, the settings and the definitions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::authorizer::MessageAuthorizer;
use super::registered::Registered;
use super::settings::Settings;
use crate::engine::health::HealthMonitor;
use crate::engine::lifecycle::Lifecycle;
use crate::env::Environment;
use crate::saga::Definition;
use crate::service::Reaction;
use crate::step::States;
use crate::store::{DefinitionId, Status, Store};
use crate::transport::Transport;

/// What every component of a runtime may use.
pub(crate) struct EngineContext<S: Store> {
    pub(crate) store: Arc<S>,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) authorizer: MessageAuthorizer,
    pub(crate) env: Arc<dyn Environment>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) definitions: BTreeMap<DefinitionId, Arc<Definition<S>>>,
    pub(crate) definition_ids: Arc<[DefinitionId]>,
    /// The steps that are hosted for others, by service and name.
    pub(crate) hosted: BTreeMap<(String, String), Arc<Definition<S>>>,
    /// The reactions to events, by service.
    pub(crate) reactions: BTreeMap<String, Arc<Vec<Reaction<S>>>>,
    /// The services whose messages are received here.
    pub(crate) services: Vec<String>,
    pub(crate) states: States,
    /// Whether the store can start a saga in a step transaction.
    pub(crate) starts_in_transactions: bool,
    /// Whether this runtime relays the outbox, instead of change data capture.
    pub(crate) is_relayed: bool,
    pub(crate) lifecycle: Arc<Lifecycle>,
    pub(crate) health: HealthMonitor,
}

/// What connects a runtime with the world around it.
pub(crate) struct Ports<S: Store> {
    pub(crate) store: Arc<S>,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) authorizer: MessageAuthorizer,
    pub(crate) env: Arc<dyn Environment>,
}

impl<S: Store> EngineContext<S> {
    pub(crate) fn new(ports: Ports<S>, settings: Settings, registered: Registered<S>) -> Self {
        let capabilities = ports.store.capabilities();
        Self {
            definition_ids: registered.definitions.keys().cloned().collect(),
            starts_in_transactions: capabilities.starts_in_transactions,
            is_relayed: capabilities.relayed,
            lifecycle: Arc::new(Lifecycle::new(Arc::clone(&ports.env))),
            health: HealthMonitor::new(Arc::clone(&ports.env)),
            store: ports.store,
            transport: ports.transport,
            authorizer: ports.authorizer,
            env: ports.env,
            settings: Arc::new(settings),
            definitions: registered.definitions,
            hosted: registered.hosted,
            reactions: registered.reactions,
            services: registered.services,
            states: registered.states,
        }
    }

    /// How many commands of ordinary steps one transaction may carry.
    pub(crate) fn batch_max(&self) -> usize {
        self.settings.batch_max.min(self.store.capabilities().batch_max)
    }

    /// The shortest time for which anything is kept; none if everything is kept for ever.
    pub(crate) fn shortest_retention(&self) -> Option<Duration> {
        let settings = &self.settings;
        let of = |definition: &Arc<Definition<S>>| definition.retention.or(settings.default_retention);
        let sagas = self.definitions.values().filter(|definition| !definition.is_hosted()).filter_map(of);
        let sagas = sagas
            .flat_map(|retention| [Status::Completed, Status::Compensated].map(|status| retention.full_for(status)));
        let messages = (!self.services.is_empty()).then_some(settings.retention);
        let closed = settings.closed_asked_after.filter(|_| !self.hosted.is_empty());
        sagas.chain(messages).chain(settings.events_retention).chain(closed).min()
    }

    /// Whether calls of a step of a registered definition are made under a lock.
    pub(crate) fn locks_calls(&self) -> bool {
        self.definitions.values().any(|definition| definition.locks_calls)
    }

    pub(crate) fn random_uuid(&self) -> Uuid {
        random_uuid(&*self.env)
    }
}

/// A random id, from the environment's randomness.
pub(crate) fn random_uuid(env: &dyn Environment) -> Uuid {
    let bits = (u128::from(env.random()) << 64) | u128::from(env.random());
    uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid()
}
