use std::time::Duration;

use saga_core::engine::{RuntimeBuilder, SagaStatus};
use saga_core::{Outcome, Runtime, Saga, Settings};

use crate::{Order, Shop, World, order_saga};

/// A store, the order saga and an outside world.
pub struct Fixture<S: Shop> {
    /// The store.
    pub store: S,
    /// The outside world.
    pub world: World,
    /// The saga.
    pub saga: Saga<S, Order>,
    folder: S::Folder,
}

/// Short times, so that what waits for them does not wait long.
pub fn quick(settings: &mut Settings) {
    settings.poll_interval = Duration::from_millis(20);
    settings.member_ttl = Duration::from_secs(1);
    settings.lease_ttl = Duration::from_secs(6);
    settings.shutdown_timeout = Duration::from_secs(10);
}

impl<S: Shop> Fixture<S> {
    /// All of it, new.
    pub async fn new() -> Self {
        let (store, folder) = S::fresh().await;
        Self { store, world: World::new(), saga: order_saga(), folder }
    }

    /// A runtime to be, with the saga and the world.
    pub fn builder(&self) -> RuntimeBuilder<S> {
        self.builder_on(self.store.clone())
    }

    /// The same on another handle.
    pub fn builder_on(&self, store: S) -> RuntimeBuilder<S> {
        Runtime::builder(store).saga(&self.saga).state(self.world.clone()).settings(quick)
    }

    /// A runtime to be that is not taken for dead where it waits for the processor.
    pub fn patient(&self) -> RuntimeBuilder<S> {
        self.builder().settings(|settings| settings.member_ttl = settings.lease_ttl)
    }

    /// A runtime.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn runtime(&self) -> Runtime<S> {
        self.builder().start().await.expect("the runtime starts")
    }

    /// The same data as the next process sees it.
    #[must_use]
    pub async fn reopened(self) -> Self {
        let Self { store, world, saga, folder } = self;
        let store = store.reopened(&folder).await;
        Self { store, world, saga, folder }
    }

    /// Starts the saga and waits for what becomes of it.
    ///
    /// # Panics
    /// When it does not start or the runtime ends.
    pub async fn run(&self, runtime: &Runtime<S>, key: &str) -> Outcome {
        let running = runtime.start(&self.saga, key, Order::of(1)).await.expect("it starts");
        running.outcome().await.expect("the runtime runs")
    }

    /// What is known of a saga.
    ///
    /// # Panics
    /// When there is none.
    pub async fn status(&self, runtime: &Runtime<S>, key: &str) -> SagaStatus {
        runtime.status(key).await.expect("it can be asked for").expect("there is such a saga")
    }
}
