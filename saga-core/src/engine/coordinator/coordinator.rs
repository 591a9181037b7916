//! The component that handles replies and reports from hosts.

use std::sync::Arc;

use super::saga_locks::KeyedMutex;
use crate::engine::commit::Committer;
use crate::engine::context::EngineContext;
use crate::engine::decide::Decider;
use crate::engine::message::Messages;
use crate::engine::schedule::InlineSteps;
use crate::store::Store;

/// Applies the replies and reports of hosts to the sagas that wait for them, and sends commands again.
pub(crate) struct Coordinator<S: Store> {
    pub(super) ctx: Arc<EngineContext<S>>,
    pub(super) committer: Arc<Committer<S>>,
    pub(super) decider: Arc<Decider<S>>,
    pub(super) messages: Arc<Messages>,
    pub(super) inline_steps: Arc<InlineSteps<S>>,
    pub(super) saga_locks: KeyedMutex,
}

impl<S: Store> Coordinator<S> {
    pub(crate) fn new(
        committer: Arc<Committer<S>>,
        decider: Arc<Decider<S>>,
        inline_steps: Arc<InlineSteps<S>>,
    ) -> Self {
        let (ctx, messages) = (Arc::clone(&committer.ctx), Arc::clone(&decider.messages));
        Self { ctx, committer, decider, messages, inline_steps, saga_locks: KeyedMutex::default() }
    }
}
