//! Hints from other processes.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::commit::Committer;
use crate::store::{Hint, Store};

/// Listens to the hints that other processes give through the store.
pub(crate) struct HintListener<S: Store> {
    committer: Arc<Committer<S>>,
}

impl<S: Store> HintListener<S> {
    pub(crate) fn new(committer: Arc<Committer<S>>) -> Self {
        Self { committer }
    }

    /// Wakes the components of this process when another process says that there is work for them, until it is dropped.
    pub(crate) async fn listen(self: Arc<Self>) {
        let Some(mut listener) = self.committer.ctx.store.listen() else { return };
        loop {
            match listener.next_hint().await {
                Hint::Work => self.committer.scheduler.announce_work(Duration::ZERO),
                Hint::Outbox => self.committer.outbox.filled.notify_one(),
                Hint::Inbox => self.committer.inbox_filled.notify_one(),
            }
        }
    }
}
