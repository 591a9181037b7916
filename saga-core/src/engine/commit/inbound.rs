//! Committing what was decided for a message.

use std::sync::Arc;

use super::committer::Committer;
use crate::engine::instance::{NextSlot, NextWork, PendingCommit};
use crate::engine::message::{HandleError, InboundMessage};
use crate::saga::Definition;
use crate::store::{Miss, Store};

impl<S: Store> Committer<S> {
    /// Applies what was decided for a message; answers whether it need not be decided again.
    pub(crate) async fn commit_inbound(
        self: &Arc<Self>,
        mut prepared: PendingCommit<S>,
        arrived: &InboundMessage,
    ) -> Result<bool, HandleError> {
        prepared.changes = arrived.handled(std::mem::take(&mut prepared.changes));
        match self.commit_decision(prepared).await? {
            Ok(()) => Ok(true),
            // Another process has the message.
            Err(Miss::Work(work)) if arrived.work.is_some_and(|own| own.id == work) => Ok(true),
            Err(_) => Ok(false),
        }
    }

    /// Ids for the commands that may follow from a decision, one of which runs here if a slot is free.
    pub(crate) async fn reserve_next_work(&self, definition: &Definition<S>) -> Result<NextWork, HandleError> {
        let ids = self.store_calls.take_ids(definition.width).await;
        let ids =
            ids.ok_or_else(|| HandleError::Later { why: "the store gave no ids".to_owned(), is_counted: false })?;
        Ok(NextWork { ids: ids.start, slot: NextSlot::Free })
    }
}
