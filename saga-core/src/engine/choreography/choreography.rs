//! Sagas that no service coordinates: events ask for their steps.

use std::sync::Arc;

use crate::engine::commit::Committer;
use crate::engine::context::EngineContext;
use crate::engine::host::Host;
use crate::engine::message::Validator;
use crate::store::Store;

/// Does what a service does when an event comes.
pub(crate) struct Choreography<S: Store> {
    pub(super) ctx: Arc<EngineContext<S>>,
    pub(crate) host: Arc<Host<S>>,
    pub(super) committer: Arc<Committer<S>>,
    pub(super) validator: Arc<Validator<S>>,
}

impl<S: Store> Choreography<S> {
    pub(crate) fn new(host: Arc<Host<S>>) -> Self {
        let (committer, validator) = (Arc::clone(&host.committer), Arc::clone(&host.validator));
        Self { ctx: Arc::clone(&host.ctx), committer, validator, host }
    }
}
