use std::sync::Arc;

use async_trait::async_trait;
use saga_core::engine::RuntimeBuilder;
use saga_core::store::Store;
use saga_core::{Event, Service};

use super::super::store::Explored;

/// What is explored: services that know each other's events, what is told to them, and how to judge what they did.
#[async_trait]
pub trait ExploreEvents: Send + Sync + 'static {
    /// The user's store. Each service has one of its own.
    type Store: Store;
    /// Everything that one run works with: the stores, and the books of services outside.
    type World: Send + Sync + 'static;

    /// The services, as production has them. Steps run on every store of their connection, so that a function
    /// `service::<S: Store<Conn = ..>>()` makes them for production and for this.
    fn services(&self) -> Vec<Service<Explored<Self::Store>>>;

    /// The events that are published to the services, in this order, with which the saga begins.
    fn told(&self) -> Vec<FirstEvent>;

    /// A world that nothing has happened in. Each run gets its own.
    ///
    /// # Cancel safety
    /// It is never dropped before its end.
    async fn fresh(&self) -> Self::World;

    /// The store of that service. It is asked again after each crash, as a new process would open the data again.
    fn store(&self, world: &Self::World, service: &str) -> Arc<Self::Store>;

    /// Gives the runtime of that service what its steps take as `State<T>`. Without states this stays as it is.
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
    /// Says what is wrong with them.
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
