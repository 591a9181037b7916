//! Messages that arrived.

use std::time::Duration;

use async_trait::async_trait;

use crate::store::{Lease, Message, StoreError, Timestamp, UnreadableWork, WorkId, WorkRef};

/// A message that arrived.
#[derive(Debug, Clone)]
pub struct NewReceived {
    /// The id of the row of `work` that keeps it.
    pub work: WorkId,
    /// The message.
    pub message: Message,
    /// Set where the process that stores the message handles it at once; otherwise the row is free.
    pub lease: Option<Lease>,
}

/// The answer of [`Inbox::receive`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedBatch {
    /// For each message, in the order of the request, whether its id was new.
    pub new: Vec<bool>,
    /// The store's clock at the time of the statement.
    pub now: Timestamp,
}

/// A received message that was claimed.
#[derive(Debug, Clone)]
pub struct ClaimedMessage {
    /// Its row of `work`, under its new epoch.
    pub work: WorkRef,
    /// The message, as it was received.
    pub message: Message,
    /// Attempts that are written down.
    pub attempts: u32,
    /// Whether it was taken from an owner that vanished.
    pub recovered: bool,
}

/// The answer of [`Inbox::claim_received`].
#[derive(Debug, Clone, Default)]
pub struct ClaimedMessages {
    /// The messages.
    pub messages: Vec<ClaimedMessage>,
    /// The store's clock at the time of the claim.
    pub now: Timestamp,
    /// The time until the next row that this claim may take is due, if there is one.
    pub next_due_in: Option<Duration>,
    /// The rows whose message cannot be read. They keep no other message from being claimed.
    pub unreadable: Vec<UnreadableWork>,
}

/// Keeping what arrived until it was handled.
///
/// A received message lies in the same table as commands, as a row of `work` without a saga, a step or a definition. So
/// [`renew`](crate::store::Work::renew), [`release_work`](crate::store::Work::release_work),
/// [`begin_attempt`](crate::store::Work::begin_attempt), and what [`Changes`](crate::store::Changes) finish and postpone apply to it
/// too, by its [`WorkRef`]. [`Message::encode`] makes one column of it. The row is deleted once the message is handled;
/// the message's id is kept in a table of its own, with the time, for as long as duplicates may arrive.
///
/// # Contract
/// - `S-INBOX-1` [`receive`](Inbox::receive) stores, in one commit, every message whose id was not received before: a row of `work` with epoch 1, due at once, leased as given, and its id. When it returns, both are as durable as the store is.
/// - `S-INBOX-2` A message whose id was received before, in an earlier call, in the same call or in one at the same time, is answered with false and writes nothing, also when its row is long gone. An id is one message in all tenants.
/// - `S-INBOX-3` [`claim_received`](Inbox::claim_received) takes such rows, and no others, as [`claim`](crate::store::Work::claim) takes commands: due and free, oldest due first, at most `limit`, each under the next epoch, for the owner and the lease, recovered when its owner vanished, in one commit; the message is returned as it was received. [`claim`](crate::store::Work::claim) never takes such rows, and [`unknown_work`](crate::store::Work::unknown_work) does not list them; [`backlog`](crate::store::Work::backlog) counts them.
/// - `S-INBOX-4` [`forget_received`](Inbox::forget_received) deletes ids that were received longer ago than that and whose row of `work` is gone, at most `limit` of them, and answers how many it deleted. From then on such an id is new.
#[async_trait]
pub trait Inbox: Send + Sync {
    /// Stores messages.
    async fn receive(&self, messages: Vec<NewReceived>) -> Result<ReceivedBatch, StoreError>;

    /// Claims messages that no process has leased.
    async fn claim_received(&self, lease: Lease, limit: usize) -> Result<ClaimedMessages, StoreError>;

    /// Forgets old ids.
    async fn forget_received(&self, older_than: Duration, limit: usize) -> Result<u64, StoreError>;
}
