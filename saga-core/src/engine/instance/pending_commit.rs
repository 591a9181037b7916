//! What a decision writes, and what follows when that is committed.

use std::time::Duration;

use super::saga_instance::SagaInstance;
use super::send_via::SendVia;
use super::work_item::WorkItem;
use crate::engine::outcome::Outcome;
use crate::machine::Phase;
use crate::store::{Changes, NewMessage, Postponed, SagaId, Store};

/// What is to be written, and what follows when it is committed.
pub(crate) struct PendingCommit<S: Store> {
    /// Without the encoded state, which [`take_changes`](Self::take_changes) adds.
    pub(crate) changes: Changes,
    /// The saga as it will be, where no successor carries it.
    pub(crate) saga: Option<SagaInstance<S>>,
    /// The next command, leased to this process. It is large, and goes through many hands.
    pub(crate) successor: Option<Box<WorkItem<S>>>,
    /// After how long an unclaimed command falls due.
    pub(crate) unclaimed_due_in: Option<Duration>,
    /// A command is due for which this process has no room.
    pub(crate) has_no_room: bool,
    /// The saga moved; it has this outcome now, if it has one.
    pub(crate) outcome: Option<(SagaId, Option<Outcome>)>,
    /// The phase that the saga has gone into, if it is another one than before.
    pub(crate) turned: Option<Phase>,
    /// Whether there are messages that the relays send.
    pub(crate) has_messages: bool,
    /// Those that are sent from memory.
    pub(crate) sent_from_memory: Vec<NewMessage>,
    /// Whether a step is asked of another service, whose reply the saga waits for.
    pub(crate) awaits_reply: bool,
    /// Who sends the messages.
    send_via: SendVia,
}

impl<S: Store> PendingCommit<S> {
    /// An unclaimed command falls due after this time.
    pub(crate) fn leave_free(&mut self, due_in: Duration) {
        self.unclaimed_due_in = Some(self.unclaimed_due_in.map_or(due_in, |earlier| earlier.min(due_in)));
    }

    /// Rows that no process has fall due at other times.
    pub(crate) fn postpone_rows(&mut self, rows: impl IntoIterator<Item = Postponed>) {
        for row in rows {
            self.leave_free(row.due_in);
            self.changes.postponed.push(row);
        }
    }

    /// Nothing is written, and nothing follows.
    pub(crate) fn nothing() -> Self {
        Self::sending_via(SendVia::Relay)
    }

    /// Nothing so far. What is added later is sent that way.
    pub(crate) fn sending_via(send_via: SendVia) -> Self {
        Self {
            changes: Changes::default(),
            saga: None,
            successor: None,
            unclaimed_due_in: None,
            has_no_room: false,
            outcome: None,
            turned: None,
            has_messages: false,
            sent_from_memory: Vec::new(),
            awaits_reply: false,
            send_via,
        }
    }

    /// Steps that were done, and one that is left for later.
    pub(crate) fn left(changes: Changes, saga: SagaInstance<S>, due_in: Duration, send_via: SendVia) -> Self {
        let (outcome, left_free) = (Some((saga.id, None)), Some(due_in));
        Self { changes, saga: Some(saga), unclaimed_due_in: left_free, outcome, ..Self::sending_via(send_via) }
    }

    /// What is to be written.
    pub(crate) fn take_changes(&mut self) -> Changes {
        let mut changes = std::mem::take(&mut self.changes);
        let saga = self.successor.as_ref().map(|successor| &successor.saga).or(self.saga.as_ref());
        if let (Some(advance), Some(saga)) = (&mut changes.saga, saga) {
            advance.state = saga.state.encode();
        }
        if !changes.unlocked.is_empty() {
            // Sagas that waited may go on.
            self.leave_free(Duration::ZERO);
        }
        for message in &mut changes.messages {
            message.due_in = self.send_via.relayed_after(message.kind);
            if self.send_via.is_from_memory(message.kind) {
                self.sent_from_memory.push(message.clone());
            } else {
                self.has_messages = true;
            }
        }
        changes
    }
}
