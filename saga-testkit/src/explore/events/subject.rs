use std::sync::Arc;

use async_trait::async_trait;
use saga_core::engine::RuntimeBuilder;
use saga_core::store::Store;
use saga_core::{Event, Service};

use super::super::store::Explored;
use crate::VirtualTime;

/// The subject of an exploration of events: the services, the first events, and an audit of their effects.
#[async_trait]
pub trait ExploreEvents: Send + Sync + 'static {
    /// The user's store. Each service has its own.
    type Store: Store;
    /// The surroundings of one run: the stores, and the journals of external services.
    type World: Send + Sync + 'static;

    /// The services, as in production. A step runs on every store with its connection, so one function
    /// `service::<S: Store<Conn = ..>>()` can make them for production and for the exploration.
    fn services(&self) -> Vec<Service<Explored<Self::Store>>>;

    /// The events that begin the saga, in the order in which they are published.
    fn told(&self) -> Vec<FirstEvent>;

    /// Makes a fresh world. Each run gets its own, with a time of its own: open the stores on it.
    ///
    /// # Cancel safety
    /// It is never dropped before its end.
    async fn fresh(&self, time: &VirtualTime) -> Self::World;

    /// The store of the service. It is called again after each crash, as a new process would open the data again.
    fn store(&self, world: &Self::World, service: &str) -> Arc<Self::Store>;

    /// Gives the runtime of the service the values that its steps take as `State<T>`. The default gives none.
    fn states(
        &self,
        world: &Self::World,
        service: &str,
        runtime: RuntimeBuilder<Explored<Self::Store>>,
    ) -> RuntimeBuilder<Explored<Self::Store>> {
        let _ = (world, service);
        runtime
    }

    /// Judges the business data of all services after a run. The key of the saga is [`KEY`](Self::KEY).
    ///
    /// # Errors
    /// A text that says what is wrong.
    ///
    /// # Cancel safety
    /// It is never dropped before its end.
    async fn audit(&self, world: &Self::World) -> Result<(), String>;

    /// The key of every explored saga.
    const KEY: &'static str = "explored";
}

/// An event with which a saga begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstEvent {
    pub(super) name: &'static str,
    pub(super) payload: Result<Vec<u8>, String>,
}

impl FirstEvent {
    /// That event.
    pub fn of<E: Event>(event: &E) -> Self {
        Self { name: E::NAME, payload: serde_json::to_vec(event).map_err(|error| error.to_string()) }
    }
}
