use saga_core::engine::SagaAdmin;
use saga_core::{Saga, Service, Settings};

use crate::OpenStore;

/// Runs the operator's commands on one store.
pub struct Admin<O: OpenStore> {
    pub(crate) program: String,
    pub(crate) location: O,
    setup: Vec<Setup<SagaAdmin<O::Store>>>,
}

/// Tells what works on sagas a definition or a setting.
type Setup<T> = Box<dyn Fn(T) -> T>;

impl<O: OpenStore> Admin<O> {
    /// Makes the commands for the store at this location. `program` is the name of the application in printed commands.
    pub fn new(program: impl Into<String>, location: O) -> Self {
        Self { program: program.into(), location, setup: Vec::new() }
    }

    /// Adds a definition: its sagas can be shown and acted on.
    #[must_use]
    pub fn saga<I: 'static, R: 'static>(mut self, saga: &Saga<O::Store, I, R>) -> Self {
        let saga = saga.clone();
        self.setup.push(Box::new(move |admin| admin.saga(&saga)));
        self
    }

    /// Adds the steps that a service hosts for the sagas of other services.
    #[must_use]
    pub fn service(mut self, service: &Service<O::Store>) -> Self {
        let service = service.clone();
        self.setup.push(Box::new(move |admin| admin.service(&service)));
        self
    }

    /// Sets the service of these sagas, if they have remote steps: the name in the settings of its runtimes.
    #[must_use]
    pub fn replies_to(self, service: impl Into<String>) -> Self {
        let service = service.into();
        self.settings(move |settings| settings.service = Some(service.clone()))
    }

    /// Changes the settings as the runtimes on the store do, for example [`default_retention`](Settings::default_retention).
    #[must_use]
    pub fn settings(mut self, change: impl Fn(&mut Settings) + 'static) -> Self {
        self.setup.push(Box::new(move |admin| admin.settings(&change)));
        self
    }

    /// The sagas of this store, with all definitions.
    pub(crate) fn sagas(&self, store: O::Store) -> SagaAdmin<O::Store> {
        self.setup.iter().fold(SagaAdmin::new(store), |admin, setup| setup(admin))
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
