//! Deletes from the outbox what was sent from memory, many rows in one commit.
//!
//! No caller waits for that commit, so it is worth a short wait for more rows. After a crash in between, the relays send the rows once
//! more, and the receiver recognises them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, mpsc};

use crate::engine::context::EngineContext;
use crate::engine::lifecycle::TaskGuard;
use crate::store::{MessageId, Store};

/// How long the first row of a commit waits for others: a small part of the time after which the relays read it.
const GATHERING: Duration = Duration::from_millis(20);

/// Rows that were sent, and are not deleted yet. They count as work in flight, so that a shutdown deletes them.
#[derive(Debug)]
pub(super) struct SentRows {
    sender: mpsc::UnboundedSender<(MessageId, TaskGuard)>,
    receiver: Mutex<mpsc::UnboundedReceiver<(MessageId, TaskGuard)>>,
}

impl SentRows {
    pub(super) fn new() -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Self { sender, receiver: Mutex::new(receiver) }
    }

    pub(super) fn push(&self, row: MessageId, under_way: TaskGuard) {
        // The receiver lives as long as this does.
        drop(self.sender.send((row, under_way)));
    }

    /// Deletes rows until it is dropped.
    pub(super) async fn serve<S: Store>(&self, ctx: &Arc<EngineContext<S>>) {
        let mut receiver = self.receiver.lock().await;
        let mut rows = Vec::new();
        while receiver.recv_many(&mut rows, 1).await > 0 {
            ctx.env.sleep(GATHERING).await;
            while let Ok(row) = receiver.try_recv() {
                rows.push(row);
            }
            let (sent, under_way): (Vec<MessageId>, Vec<TaskGuard>) = rows.drain(..).unzip();
            match ctx.store.sent(&sent).await {
                Ok(()) => ctx.health.store_works("sent"),
                // The relays send them once more.
                Err(error) => ctx.health.store_failed("sent", &error),
            }
            drop(under_way);
        }
    }
}
