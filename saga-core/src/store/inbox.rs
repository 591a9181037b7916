//! The duty of keeping what arrived until it was handled.

use std::time::Duration;

use async_trait::async_trait;

use super::{Lease, Message, StoreError, Timestamp, WorkId, WorkRef};

/// A message that arrived.
#[derive(Debug, Clone)]
pub struct NewReceived {
    /// The id of the row of `work` that keeps it.
    pub work: WorkId,
    /// The message.
    pub message: Message,
    /// Set where the process that stores it handles it at once; the row is free where it is not.
    pub lease: Option<Lease>,
}

/// What [`Inbox::receive`] answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedBatch {
    /// Of each message, in the order of the request, whether its id was new.
    pub new: Vec<bool>,
    /// The store's clock at the moment of the statement.
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

/// What [`Inbox::claim_received`] answers.
#[derive(Debug, Clone, Default)]
pub struct ClaimedMessages {
    /// The messages.
    pub messages: Vec<ClaimedMessage>,
    /// The store's clock at the moment of the claim.
    pub now: Timestamp,
    /// How long until the next row that this claim may take falls due, if one waits.
    pub next_due_in: Option<Duration>,
}

/// Keeping what arrived until it was handled.
///
/// A received message lies in the same table as commands do, as a row of `work` without a saga, a step or a definition:
/// so [`renew`](super::Work::renew), [`give_back`](super::Work::give_back),
/// [`begin_attempt`](super::Work::begin_attempt), and what [`Changes`](super::Changes) finish and postpone, hold for it
/// as they stand, by its [`WorkRef`]. [`Message::encode`] makes one column of it. Beside the row, which is deleted once
/// the message was handled, the id is kept in a table of its own, with the time, for as long as duplicates may come.
///
/// # Contract
/// - `S-INBOX-1` [`receive`](Inbox::receive) stores, in one commit, every message whose id was not received before: a row of `work` with epoch 1, due at once, leased as given, and its id. When it returned, both are as durable as the store is.
/// - `S-INBOX-2` A message whose id was received before, in an earlier call, in the same one, or in one under way at once, is answered with false and writes nothing, also when its row is long gone. One id is one message whoever's it is: tenants do not matter.
/// - `S-INBOX-3` [`claim_received`](Inbox::claim_received) takes such rows, and no others, as [`claim`](super::Work::claim) takes commands: due and free, oldest due first, at most `limit`, each under the next epoch, for the owner and the lease, suspect when its owner vanished, in one commit; a message comes back as it was received. [`claim`](super::Work::claim) never takes them, and [`unknown_work`](super::Work::unknown_work) does not list them; [`backlog`](super::Work::backlog) counts them.
/// - `S-INBOX-4` [`forget_received`](Inbox::forget_received) deletes ids that were received longer ago than that and whose row of `work` is gone, at most `limit` of them, and answers how many it deleted. From then on such an id is new.
#[async_trait]
pub trait Inbox: Send + Sync {
    /// Stores messages.
    async fn receive(&self, messages: Vec<NewReceived>) -> Result<ReceivedBatch, StoreError>;

    /// Claims messages that nobody has.
    async fn claim_received(&self, lease: Lease, limit: usize) -> Result<ClaimedMessages, StoreError>;

    /// Forgets old ids.
    async fn forget_received(&self, older_than: Duration, limit: usize) -> Result<u64, StoreError>;
}
