//! The component that runs steps without a user function.

use std::sync::Arc;

use crate::engine::context::EngineContext;
use crate::engine::execute::lock::LockRequests;
use crate::engine::execute::record::AttemptRecorder;
use crate::store::Store;

/// Runs waits, takes semantic locks, and fans out and joins the lists of for-each steps.
pub(crate) struct BuiltinSteps<S: Store> {
    pub(super) ctx: Arc<EngineContext<S>>,
    pub(super) records: Arc<AttemptRecorder<S>>,
    pub(super) locks: Arc<LockRequests<S>>,
}

impl<S: Store> BuiltinSteps<S> {
    pub(crate) fn new(records: Arc<AttemptRecorder<S>>, locks: Arc<LockRequests<S>>) -> Self {
        Self { ctx: Arc::clone(&records.ctx), records, locks }
    }
}
