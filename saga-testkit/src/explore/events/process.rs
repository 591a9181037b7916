use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use saga_core::engine::RuntimeBuilder;
use saga_core::store::{Members, Outbox, SagaFilter, Sagas, Work};
use saga_core::{Runtime, Service};

use super::super::life::{Director, Life, Look};
use super::super::process::{LEASE, LIVES_MAX, POLL, RETRY, SAGAS_MAX, no_letter_left};
use super::super::store::{Boundaries, Explored};
use super::broker::{Broker, Line};
use super::subject::ExploreEvents;
use crate::VirtualTime;
use crate::intercept::Intercepted;
use crate::time::VirtualEnvironment;

/// A service of one run, over all lives of its process.
pub(super) struct Process<E: ExploreEvents> {
    pub(super) subject: Arc<E>,
    pub(super) world: Arc<E::World>,
    pub(super) time: VirtualTime,
    pub(super) service: Service<Explored<E::Store>>,
    pub(super) director: Arc<Director>,
    pub(super) broker: Broker,
    state: Mutex<State<E>>,
}

struct State<E: ExploreEvents> {
    /// While it is up.
    runtime: Option<Runtime<Explored<E::Store>>>,
    /// Why it does not come up any more.
    broken: Option<String>,
}

impl<E: ExploreEvents> Process<E> {
    pub(super) fn new(
        subject: &Arc<E>,
        (world, time): (&Arc<E::World>, &VirtualTime),
        service: Service<Explored<E::Store>>,
        director: Arc<Director>,
        broker: &Broker,
    ) -> Arc<Self> {
        let state = Mutex::new(State { runtime: None, broken: None });
        let (subject, world, broker) = (Arc::clone(subject), Arc::clone(world), broker.clone());
        Arc::new(Self { subject, world, time: time.clone(), service, director, broker, state })
    }

    pub(super) fn store(&self) -> Arc<E::Store> {
        self.subject.store(&self.world, self.service.name())
    }

    /// Whether it is up.
    ///
    /// # Errors
    /// When it does not come up any more.
    pub(super) fn is_up(&self) -> Result<bool, String> {
        let state = self.lock();
        match &state.broken {
            Some(problem) => Err(format!("{}: {problem}", self.service.name())),
            None => Ok(state.runtime.is_some()),
        }
    }

    /// Keeps it running, however often it crashes.
    pub(super) async fn keep_alive(self: Arc<Self>) {
        let look: Arc<Look> = Arc::new(|| Box::pin(std::future::ready(None)));
        for nth in 0..LIVES_MAX {
            let life = Life::new(&self.director, &look);
            let env = Arc::new(VirtualEnvironment::with_seed(self.time.clock(), nth));
            let _killed = Killed(Arc::clone(&env));
            let started = tokio::select! {
                biased;
                () = life.died() => None,
                started = self.builder(&life, &env).start() => Some(started),
            };
            match started {
                Some(Ok(runtime)) => {
                    self.lock().runtime = Some(runtime);
                    life.died().await;
                    self.lock().runtime = None;
                }
                Some(Err(error)) => {
                    self.lock().broken = Some(error.to_string());
                    return;
                }
                None => {}
            }
            env.kill();
            // What the dead process held is free at once, as when its silence has lasted.
            if let Some(member) = life.member()
                && let Err(error) = self.store().leave(member).await
            {
                self.lock().broken = Some(error.to_string());
                return;
            }
        }
        self.lock().broken = Some("it crashed again and again".to_owned());
    }

    fn builder(&self, life: &Arc<Life>, env: &Arc<VirtualEnvironment>) -> RuntimeBuilder<Explored<E::Store>> {
        let store = Intercepted(Boundaries { inner: self.store(), life: Arc::clone(life) });
        let transport = Line { broker: self.broker.clone(), life: Arc::clone(life) };
        let builder = self.subject.states(&self.world, self.service.name(), Runtime::builder(store));
        let builder = builder.environment(Arc::clone(env) as Arc<_>).transport(transport).service(&self.service);
        builder.settings(|settings| {
            settings.lease_ttl = LEASE;
            settings.member_ttl = LEASE;
            settings.poll_interval = POLL;
            settings.retry = RETRY;
            settings.shutdown_timeout = LEASE;
        })
    }

    /// Ends it.
    pub(super) async fn stop(&self) {
        let runtime = self.lock().runtime.take();
        if let Some(runtime) = runtime {
            runtime.shutdown().await;
        }
    }

    /// Whether it has nothing to do and nothing to tell.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) async fn is_idle(&self) -> Result<bool, String> {
        let store = self.store();
        let told = store.depth().await.map_err(|error| error.to_string())?.rows == 0;
        let (_, due_for) = store.backlog().await.map_err(|error| error.to_string())?;
        Ok(told && due_for.is_none())
    }

    /// What is left that should not be.
    ///
    /// # Errors
    /// Says what.
    pub(super) async fn nothing_left(&self) -> Result<(), String> {
        let (store, name) = (self.store(), self.service.name());
        let failed = |error: saga_core::store::StoreError| error.to_string();
        if !store.orphaned(1).await.map_err(failed)?.is_empty() {
            return Err(format!("{name}: a step waits for nothing"));
        }
        no_letter_left(&*store).await.map_err(|problem| format!("{name}: {problem}"))?;
        let sagas = store.list(&SagaFilter { limit: SAGAS_MAX, ..SagaFilter::default() }).await.map_err(failed)?;
        match sagas.iter().find(|saga| !saga.status.is_ended()) {
            Some(saga) => Err(format!("{name}: {} has not ended, it is {}", saga.key, saga.status)),
            None => Ok(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the tasks of a life with it, also where the run is dropped.
struct Killed(Arc<VirtualEnvironment>);

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.kill();
    }
}
