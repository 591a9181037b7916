//! The component that holds leases.

use std::sync::Arc;

use super::call_starts::CallStarts;
use crate::engine::context::EngineContext;
use crate::engine::schedule::Scheduler;
use crate::store::Store;

/// Holds the leases of the commands that run here, and renews them while a call takes long.
pub(crate) struct LeaseKeeper<S: Store> {
    pub(super) ctx: Arc<EngineContext<S>>,
    pub(super) scheduler: Arc<Scheduler<S>>,
    pub(super) call_starts: CallStarts,
}

impl<S: Store> LeaseKeeper<S> {
    pub(crate) fn new(scheduler: Arc<Scheduler<S>>) -> Self {
        Self { ctx: Arc::clone(&scheduler.ctx), scheduler, call_starts: CallStarts::new() }
    }
}
