//! Sending what this process has just committed, from memory.
//!
//! Commands, undos and replies are in no order with other messages, so that nobody need read them back from the outbox to
//! send them. Their rows are there all the same, due a little later: whatever did not get through by then is found by the
//! relays, and what got through twice is known to its receiver.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, mpsc};

use super::relay::met_outage;
use super::shared::EngineContext;
use super::tasks::TaskGuard;
use crate::store::{MessageId, MessageKind, NewMessage, OutboxRow, Store};

/// When the relays may read what is sent from memory.
const RELAYED_AFTER: Duration = Duration::from_secs(5);
/// Beyond so many that are not sent yet, the relays send what follows.
const WAITING_MAX: usize = 1_024;
/// How many calls of the transport are under way at a time.
const CALLS_MAX: usize = 2;

/// Messages between their commit and the transport.
#[derive(Debug)]
pub(super) struct SendQueue {
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
    pub(super) fn new() -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Self { sender, receiver: Mutex::new(receiver), waiting: AtomicUsize::new(0) }
    }
}

impl<S: Store> EngineContext<S> {
    /// Says of messages that are about to be committed which of them are sent from memory.
    pub(super) fn mark_sent_from_memory(&self, messages: &mut [NewMessage]) {
        let is_own = |message: &&mut NewMessage| message.kind != MessageKind::Event;
        if messages.is_empty() || !self.can_send_from_memory() {
            return;
        }
        for message in messages.iter_mut().filter(is_own) {
            message.due_in = RELAYED_AFTER;
        }
    }

    /// Sends a message that was committed.
    pub(super) fn send_from_memory(&self, message: NewMessage) {
        // Without a clock it waits for the relays.
        let Some(committed_at) = self.store_clock.now(self.env.now()) else { return };
        let row = OutboxRow {
            id: message.id,
            kind: message.kind,
            tenant: message.tenant,
            aggregate_type: message.aggregate_type,
            aggregate_id: message.aggregate_id,
            event_type: message.event_type,
            payload: message.payload,
            position: message.position,
            committed_at,
            headers: message.headers,
            attempts: 0,
        };
        self.send_queue.waiting.fetch_add(1, Ordering::Relaxed);
        if self.send_queue.sender.send(OutgoingRow { row, under_way: self.tasks.enter() }).is_err() {
            self.send_queue.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Sends what is committed here, until it is dropped. What comes while calls are under way goes with the next.
    pub(super) async fn serve_send_queue(self: Arc<Self>) {
        let mut receiver = self.send_queue.receiver.lock().await;
        let lines = Arc::new(Semaphore::new(CALLS_MAX));
        while let Ok(line) = Arc::clone(&lines).acquire_owned().await {
            let mut leaving = Vec::new();
            if receiver.recv_many(&mut leaving, self.settings.relay_batch).await == 0 {
                return;
            }
            self.spawn("send", Box::pin(Arc::clone(&self).send_rows(leaving, line)));
        }
    }

    async fn send_rows(self: Arc<Self>, leaving: Vec<OutgoingRow>, line: OwnedSemaphorePermit) {
        let (rows, under_way): (Vec<_>, Vec<_>) =
            leaving.into_iter().map(|leaving| (leaving.row, leaving.under_way)).unzip();
        let results = self.publish(&rows).await;
        // Another call need not wait until these are written off.
        drop(line);
        self.send_queue.waiting.fetch_sub(rows.len(), Ordering::Relaxed);
        match results.first() {
            Some(Err(error)) if met_outage(&results) => self.transport_failed("publish", error),
            _ => self.transport_works("publish"),
        }
        let sent = rows.iter().zip(&results).filter(|(_, result)| result.is_ok()).map(|(row, _)| row.id);
        let sent: Vec<MessageId> = sent.collect();
        if !sent.is_empty() {
            match self.store.sent(&sent).await {
                Ok(()) => self.store_works("sent"),
                // The relays send them once more.
                Err(error) => self.store_failed("sent", &error),
            }
        }
        drop(under_way);
    }

    fn can_send_from_memory(&self) -> bool {
        self.is_relayed
            && !self.is_stopping()
            && !self.transport_is_failing()
            && self.send_queue.waiting.load(Ordering::Relaxed) < WAITING_MAX
            && self.store_clock.now(self.env.now()).is_some()
    }
}
