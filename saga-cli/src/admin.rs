use anyhow::bail;
use saga_core::engine::{SagaAdmin, SagaQuery};
use saga_core::{Saga, Service};

use crate::OpenStore;
use crate::args::ActorArgs;

/// Runs the operator's commands on one store.
pub struct Admin<O: OpenStore> {
    pub(crate) program: String,
    pub(crate) location: O,
    replies_to: Option<String>,
    register_to_act: Vec<Register<SagaAdmin<O::Store>>>,
    register_to_query: Vec<Register<SagaQuery<O::Store>>>,
}

/// Adds a definition to what works on sagas.
type Register<T> = Box<dyn Fn(T) -> T>;

impl<O: OpenStore> Admin<O> {
    /// Commands on the store at this location. `program` is the name of the application in what the commands tell the
    /// operator to type.
    pub fn new(program: impl Into<String>, location: O) -> Self {
        Self {
            program: program.into(),
            location,
            replies_to: None,
            register_to_act: Vec::new(),
            register_to_query: Vec::new(),
        }
    }

    /// Adds a definition: its sagas can be shown and worked on.
    #[must_use]
    pub fn saga<I: 'static>(mut self, saga: &Saga<O::Store, I>) -> Self {
        let (act, shown) = (saga.clone(), saga.clone());
        self.register_to_act.push(Box::new(move |desk| desk.saga(&act)));
        self.register_to_query.push(Box::new(move |query| query.saga(&shown)));
        self
    }

    /// Adds the steps that a service hosts for the sagas of other services.
    #[must_use]
    pub fn service(mut self, service: &Service<O::Store>) -> Self {
        let (act, shown) = (service.clone(), service.clone());
        self.register_to_act.push(Box::new(move |desk| desk.service(&act)));
        self.register_to_query.push(Box::new(move |query| query.service(&shown)));
        self
    }

    /// The service whose sagas these are, where other services do steps of them: the name in its runtimes' settings.
    #[must_use]
    pub fn replies_to(mut self, service: impl Into<String>) -> Self {
        self.replies_to = Some(service.into());
        self
    }

    /// The store to write to, if there is one already.
    pub(crate) async fn writable(&self) -> anyhow::Result<O::Store> {
        self.location.open_read_only().await?;
        self.location.open().await
    }

    /// Acts on sagas in the name of the operator.
    pub(crate) async fn actor(&self, actor: &ActorArgs) -> anyhow::Result<SagaAdmin<O::Store>> {
        Ok(self.desk(self.writable().await?).actor(actor.name()))
    }

    /// Acts on the sagas of this store with all definitions.
    pub(crate) fn desk(&self, store: O::Store) -> SagaAdmin<O::Store> {
        let desk = SagaAdmin::new(store);
        let desk = match &self.replies_to {
            Some(service) => desk.replies_to(service),
            None => desk,
        };
        self.register_to_act.iter().fold(desk, |desk, register| register(desk))
    }

    /// Reads the sagas, beside the processes that work on the store.
    pub(crate) async fn query(&self) -> anyhow::Result<SagaQuery<O::Store>> {
        let query = SagaQuery::new(self.location.open_read_only().await?);
        Ok(self.register_to_query.iter().fold(query, |query, register| register(query)))
    }

    pub(crate) fn no_saga<T>(&self, key: &str) -> anyhow::Result<T> {
        bail!("there is no saga {key} in {}", self.location.name())
    }
}

impl<O: OpenStore> std::fmt::Debug for Admin<O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Admin")
            .field("program", &self.program)
            .field("store", &self.location.name())
            .finish_non_exhaustive()
    }
}
