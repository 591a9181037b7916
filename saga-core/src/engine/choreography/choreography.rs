//! The component that handles events and reports.

use std::sync::Arc;

use crate::engine::commit::Committer;
use crate::engine::context::EngineContext;
use crate::engine::host::Host;
use crate::engine::message::Validator;
use crate::store::Store;

/// Handles the events that a service receives.
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
