//! Building a runtime: definitions, services, settings, and what is wrong with them.

use std::fmt;
use std::sync::Arc;

use super::engine::Engine;
use super::register::register;
use super::runtime::{Runtime, run};
use super::stored_values::check_stored_values;
use crate::authorization::{AccessPolicy, SigningKey};
use crate::engine::context::{BuildError, EngineContext, MessageAuthorizer, Ports, Registered, Settings};
use crate::env::{Activity, BoxFuture, Environment, TokioEnvironment, concurrently, during};
use crate::key::check_step_name;
use crate::log;
use crate::machine::Effect;
use crate::memory::MemoryTransport;
use crate::saga::{Definition, Saga};
use crate::service::Service;
use crate::store::{Archive, Capabilities, Durability, Store};
use crate::transport::Transport;

/// Configures and starts a [`Runtime`].
pub struct RuntimeBuilder<S: Store> {
    store: Arc<S>,
    transport: Option<Arc<dyn Transport>>,
    access_policy: Option<AccessPolicy>,
    signing_key: Option<SigningKey>,
    archive: Option<Arc<dyn Archive>>,
    env: Option<Arc<dyn Environment>>,
    settings: Settings,
    registered: Registered<S>,
    problems: Vec<String>,
}

impl<S: Store> RuntimeBuilder<S> {
    pub(crate) fn new(store: Arc<S>) -> Self {
        Self {
            store,
            transport: None,
            access_policy: None,
            signing_key: None,
            archive: None,
            env: None,
            settings: Settings::default(),
            registered: Registered::nothing(),
            problems: Vec::new(),
        }
    }

    /// Registers a definition. Several versions of one saga may be registered side by side.
    #[must_use]
    pub fn saga<I, R>(mut self, saga: &Saga<S, I, R>) -> Self {
        for definition in Definition::with_children(saga.definition()) {
            if let Some(other) = self.registered.definitions.insert(definition.id.clone(), Arc::clone(definition))
                && other.digest != definition.digest
            {
                self.problems.push(format!(
                    "{} is registered twice with different steps; give one of them another version",
                    definition.id
                ));
            }
        }
        self
    }

    /// Hosts a service: this runtime receives the commands that other services address to it, and the events that it reacts
    /// to, runs their steps, and replies.
    #[must_use]
    pub fn service(mut self, service: &Service<S>) -> Self {
        if self.registered.services.iter().any(|known| known == service.name()) {
            self.problems.push(format!("the service `{}` is given twice", service.name()));
        }
        self.registered.services.push(service.name().to_owned());
        for (step, definition) in service.hosted() {
            self.registered.hosted.insert((service.name().to_owned(), step.to_owned()), Arc::clone(definition));
            self.registered.definitions.insert(definition.id.clone(), Arc::clone(definition));
        }
        for definition in service.choreographed() {
            self.registered.definitions.insert(definition.id.clone(), Arc::clone(definition));
        }
        self.registered.reactions.insert(service.name().to_owned(), Arc::clone(service.reactions()));
        self
    }

    /// Gives the steps a value that they take as `State<T>`.
    #[must_use]
    pub fn state<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        if self.registered.states.insert(value).is_some() {
            let name = std::any::type_name::<T>();
            self.problems
                .push(format!("two states of type `{name}` were given; wrap one of them in a type of its own"));
        }
        self
    }

    /// Sets the transport for messages to other services. The default delivers them in this process.
    #[must_use]
    pub fn transport(mut self, transport: impl Transport) -> Self {
        self.transport = Some(Arc::new(transport));
        self
    }

    /// Sets which services may send messages to this one, and which messages. Without it, every sender with access to the
    /// transport is trusted.
    #[must_use]
    pub fn access_policy(mut self, policy: AccessPolicy) -> Self {
        self.access_policy = Some(policy);
        self
    }

    /// Signs every message that this runtime sends. The signature is made when the message is given to the transport, so
    /// it is not possible with a store whose messages leave by change data capture.
    #[must_use]
    pub fn sign_with(mut self, key: SigningKey) -> Self {
        self.signing_key = Some(key);
        self
    }

    /// Archives sagas before they are [purged](crate::Retention). Without an archive they are only deleted.
    #[must_use]
    pub fn archive(mut self, archive: impl Archive) -> Self {
        self.archive = Some(Arc::new(archive));
        self
    }

    /// Changes the settings.
    #[must_use]
    pub fn settings(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self
    }

    /// Sets where time, tasks and randomness come from. The default is the tokio runtime of the caller.
    #[must_use]
    pub fn environment(mut self, env: Arc<dyn Environment>) -> Self {
        self.env = Some(env);
        self
    }

    /// Starts the runtime: it continues unfinished sagas of the store, and starts new ones.
    ///
    /// It waits for the first subscription of each service, for 30 seconds at most, so that what is sent to a service from then on is
    /// received. If the transport cannot be reached, the runtime starts without, [`Health`](crate::engine::Health) says so, and it
    /// subscribes later.
    ///
    /// # Errors
    /// Every problem of the settings, the definitions and the states at once; what changed in a definition since sagas of
    /// that version were started; the values of unfinished sagas that its types cannot read; or the store's error.
    ///
    /// # Cancel safety
    /// When dropped, nothing runs. The store may remember a member that never did anything.
    pub async fn start(mut self) -> Result<Runtime<S>, BuildError> {
        let capabilities = self.store.capabilities();
        self.problems.extend(self.settings.problems(&capabilities));
        self.check_access(&capabilities);
        self.check_states();
        self.check_remote_steps();
        self.check_horizons();
        if !self.problems.is_empty() {
            return Err(BuildError::Invalid(self.problems));
        }
        match &capabilities.durability {
            Durability::Full => {}
            Durability::Process(setting) => {
                log::warn!(store = capabilities.name, setting, "store survives the process only");
            }
            Durability::None => log::warn!(store = capabilities.name, "store is not durable"),
        }
        let env = match self.env {
            Some(env) => env,
            None => Arc::new(TokioEnvironment::current()?),
        };
        let changed = register(&*self.store, &self.registered.definitions).await?;
        if !changed.is_empty() {
            return Err(BuildError::Invalid(changed));
        }
        check_stored_values(&*self.store, &self.registered.definitions, &self.settings).await?;
        let began = env.now();
        let member_ttl = env.member_ttl(self.settings.member_ttl);
        let incarnation = self.store.join(member_ttl).await?;
        if self.access_policy.is_none() && self.transport.is_some() && !self.registered.services.is_empty() {
            log::warn!(services = ?self.registered.services, "messages are not authenticated");
        }
        let authorizer = MessageAuthorizer::new(self.access_policy, self.signing_key, &self.registered.definitions);
        let transport = self.transport.unwrap_or_else(|| Arc::new(MemoryTransport::new()));
        let services = &mut self.registered.services;
        services.extend(self.settings.service.clone().filter(|name| !services.contains(name)));
        let ports = Ports { store: self.store, transport, authorizer, env };
        let ctx = Arc::new(EngineContext::new(ports, self.settings, self.registered));
        let engine = Arc::new(Engine::new(ctx, incarnation.member, self.archive));
        engine.membership.set_alive_until(began.saturating_add(member_ttl));
        // What is sent from the moment that this returns is received.
        let services = engine.ctx.services.iter();
        let subscribing =
            services.map(|service| -> BoxFuture<'_, _> { Box::pin(engine.inbox.subscribe_first(service)) });
        let subscribing = concurrently(subscribing.collect());
        let incoming = during(&*engine.ctx.env, Activity::Waiting, subscribing).await;
        Ok(run(engine, incoming))
    }

    fn check_horizons(&mut self) {
        if let Some(transport) = &self.transport {
            let within = transport.redelivers_within();
            self.problems.extend(self.settings.horizon_problems(within, transport.name()));
            let bytes_max = transport.payload_bytes_max();
            self.problems.extend(bytes_max.and_then(|max| self.settings.undo_problem(max, transport.name())));
        } else {
            self.problems.extend(self.settings.horizon_problems(None, "memory"));
        }
        for definition in self.registered.definitions.values() {
            self.problems.extend(self.settings.retention_problems(definition));
        }
    }

    /// Who has steps done by others is told what became of them under its name.
    fn check_remote_steps(&mut self) {
        if let Some(problem) = self.settings.service.as_deref().and_then(|name| check_step_name(name).err()) {
            let problem = problem.to_string().replacen("the step name", "the service's name", 1);
            self.problems.push(format!("in `settings.service` {problem}"));
        }
        self.settings.service = self.settings.service.take().or_else(|| self.registered.services.first().cloned());
        if self.settings.service.is_some() {
            return;
        }
        for definition in self.registered.definitions.values() {
            let remote = definition.shape.steps.iter().find_map(|step| match step.effect {
                Effect::Remote { service } => Some((step.name, service)),
                _ => None,
            });
            self.problems.extend(remote.map(|(step, service)| {
                format!(
                    "the step `{step}` of {} is hosted by the service `{service}`, which needs a name to reply to; \
                     give this runtime one with `.settings(|settings| settings.service = Some(\"..\".into()))`",
                    definition.id
                )
            }));
        }
    }

    fn check_access(&mut self, capabilities: &Capabilities) {
        self.problems.extend(self.access_policy.iter().flat_map(AccessPolicy::problems));
        if self.signing_key.is_some() && !capabilities.relayed {
            self.problems.push(format!(
                "the messages of the store `{}` leave by change data capture, where `.sign_with(..)` cannot sign them; \
                 leave it out, or let the store relay them",
                capabilities.name
            ));
        }
    }

    fn check_states(&mut self) {
        for definition in self.registered.definitions.values() {
            for step in &definition.steps {
                let missing =
                    step.needs.states.iter().filter(|needed| !self.registered.states.contains(needed.type_id));
                self.problems.extend(missing.map(|needed| {
                    format!(
                        "the step `{}` of {} takes `State<{}>`, which was not given; add `.state(..)` with a value of \
                         that type",
                        step.name, definition.id, needed.type_name
                    )
                }));
            }
        }
    }
}

impl<S: Store> fmt::Debug for RuntimeBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuntimeBuilder")
            .field("settings", &self.settings)
            .field("definitions", &self.registered.definitions.keys())
            .finish_non_exhaustive()
    }
}

impl<S: Store> Runtime<S> {
    /// Begins a runtime on this store.
    pub fn builder(store: impl Into<Arc<S>>) -> RuntimeBuilder<S> {
        RuntimeBuilder::new(store.into())
    }
}
