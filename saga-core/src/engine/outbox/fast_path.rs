//! Publishes, from memory, the messages that this process has just committed.
//!
//! Commands, undos and replies have no order with other messages, so they can be published without reading them from
//! the outbox. Their rows exist all the same and fall due a little later: the relays publish what did not get through
//! by then, and the receiver recognises what got through twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Mutex, Notify, OwnedSemaphorePermit, Semaphore, mpsc};

use super::publisher::{Publisher, met_outage};
use super::sent_rows::SentRows;
use crate::engine::context::EngineContext;
use crate::engine::instance::SendVia;
use crate::engine::lifecycle::TaskGuard;
use crate::engine::store_calls::StoreCalls;
use crate::store::{Hint, NewMessage, OutboxRow, Store};

/// With more messages than this in memory, the relay sends the further ones.
const WAITING_MAX: usize = 1_024;

/// How many calls of the transport run concurrently.
const CALLS_MAX: usize = 2;

/// Committed messages that are not sent yet.
#[derive(Debug)]
pub(crate) struct SendQueue {
    sender: mpsc::UnboundedSender<OutgoingRow>,
    receiver: Mutex<mpsc::UnboundedReceiver<OutgoingRow>>,
    waiting: AtomicUsize,
}

#[derive(Debug)]
struct OutgoingRow {
    row: OutboxRow,
    under_way: TaskGuard,
}

impl SendQueue {
    pub(crate) fn new() -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Self { sender, receiver: Mutex::new(receiver), waiting: AtomicUsize::new(0) }
    }
}

/// Sends the messages that this process has just committed, from memory.
pub(crate) struct Outbox<S: Store> {
    ctx: Arc<EngineContext<S>>,
    store_calls: Arc<StoreCalls<S>>,
    publisher: Arc<Publisher<S>>,
    send_queue: SendQueue,
    sent_rows: SentRows,
    /// Woken when there may be rows in the outbox.
    pub(crate) filled: Notify,
}

impl<S: Store> Outbox<S> {
    pub(crate) fn new(store_calls: Arc<StoreCalls<S>>, publisher: Arc<Publisher<S>>) -> Self {
        let ctx = Arc::clone(&publisher.ctx);
        let (send_queue, sent_rows) = (SendQueue::new(), SentRows::new());
        Self { ctx, store_calls, publisher, send_queue, sent_rows, filled: Notify::new() }
    }
}

impl<S: Store> Outbox<S> {
    /// Who sends the messages of the next commit.
    pub(crate) fn send_via(&self) -> SendVia {
        if self.can_send_from_memory() { SendVia::Memory } else { SendVia::Relay }
    }

    /// Sends a message that was committed.
    pub(crate) fn send_from_memory(&self, message: NewMessage) {
        // Without a reading of the store clock, the relay sends it.
        let Some(committed_at) = self.store_calls.clock.now(self.ctx.env.now()) else { return };
        let row = OutboxRow::committed(message, committed_at);
        self.send_queue.waiting.fetch_add(1, Ordering::Relaxed);
        if self.send_queue.sender.send(OutgoingRow { row, under_way: self.ctx.lifecycle.enter() }).is_err() {
            self.send_queue.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Sends queued messages until it is dropped. Those that arrive during a call share the next one.
    pub(crate) async fn serve_send_queue(self: Arc<Self>) {
        let mut receiver = self.send_queue.receiver.lock().await;
        let permits = Arc::new(Semaphore::new(CALLS_MAX));
        while let Ok(permit) = Arc::clone(&permits).acquire_owned().await {
            let mut leaving = Vec::new();
            if receiver.recv_many(&mut leaving, self.ctx.settings.relay_batch).await == 0 {
                return;
            }
            self.ctx.lifecycle.spawn("send", Box::pin(Arc::clone(&self).send_rows(leaving, permit)));
        }
    }

    async fn send_rows(self: Arc<Self>, leaving: Vec<OutgoingRow>, permit: OwnedSemaphorePermit) {
        let (rows, under_way): (Vec<_>, Vec<_>) =
            leaving.into_iter().map(|leaving| (leaving.row, leaving.under_way)).unzip();
        let results = self.publisher.publish(&rows).await;
        // The next call need not wait for the store.
        drop(permit);
        self.send_queue.waiting.fetch_sub(rows.len(), Ordering::Relaxed);
        match results.first() {
            Some(Err(error)) if met_outage(&results) => self.ctx.health.transport_failed("publish", error),
            _ => self.ctx.health.transport_works("publish"),
        }
        // A row that was not sent is left to the relays.
        for ((row, under_way), result) in rows.into_iter().zip(under_way).zip(results) {
            if result.is_ok() {
                self.sent_rows.push(row.id, under_way);
            }
        }
    }

    /// Deletes the rows of sent messages until it is dropped.
    pub(crate) async fn serve_sent_rows(self: Arc<Self>) {
        self.sent_rows.serve(&self.ctx).await;
    }

    fn can_send_from_memory(&self) -> bool {
        self.ctx.is_relayed
            && !self.ctx.lifecycle.is_stopping()
            && !self.ctx.health.transport_is_failing()
            && self.send_queue.waiting.load(Ordering::Relaxed) < WAITING_MAX
            && self.store_calls.clock.now(self.ctx.env.now()).is_some()
    }

    /// A commit left messages in the outbox: wakes the relay of this process, and those of others.
    pub(crate) fn wake_relay(&self) {
        self.filled.notify_one();
        self.ctx.store.hint(Hint::Outbox);
    }
}
