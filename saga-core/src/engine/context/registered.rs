//! What the application registers with a runtime.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::saga::Definition;
use crate::service::Reaction;
use crate::step::States;
use crate::store::{DefinitionId, Store};

/// The definitions and services of the application, and the values that its steps take.
pub(crate) struct Registered<S: Store> {
    pub(crate) definitions: BTreeMap<DefinitionId, Arc<Definition<S>>>,
    /// The steps that are hosted for others, by service and name.
    pub(crate) hosted: BTreeMap<(String, String), Arc<Definition<S>>>,
    /// The reactions to events, by service.
    pub(crate) reactions: BTreeMap<String, Arc<Vec<Reaction<S>>>>,
    /// The services whose messages are received here.
    pub(crate) services: Vec<String>,
    pub(crate) states: States,
}

impl<S: Store> Registered<S> {
    pub(crate) fn nothing() -> Self {
        Self {
            definitions: BTreeMap::new(),
            hosted: BTreeMap::new(),
            reactions: BTreeMap::new(),
            services: Vec::new(),
            states: States::new(),
        }
    }
}
