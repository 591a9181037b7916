//! Steps that the engine does itself.

use std::sync::Arc;

use crate::engine::context::EngineContext;
use crate::engine::execute::record::AttemptRecorder;
use crate::store::Store;

/// Does the steps that have no handler of the user: waits, and the lists of steps that run once per item.
pub(crate) struct BuiltinSteps<S: Store> {
    pub(super) ctx: Arc<EngineContext<S>>,
    pub(super) records: Arc<AttemptRecorder<S>>,
}

impl<S: Store> BuiltinSteps<S> {
    pub(crate) fn new(records: Arc<AttemptRecorder<S>>) -> Self {
        Self { ctx: Arc::clone(&records.ctx), records }
    }
}
