//! What an operator can see of messages that wait to be sent, and do with them.

use std::fmt;

use super::audit::reason_problem;
use super::tenant_store::TenantStore;
use crate::engine::context::{RuntimeError, outside_step};
use crate::engine::message::fingerprint_of;
use crate::log;
use crate::store::{DeadLetterId, DeadLetterReason, MessageId, NewDeadLetter, OutboxDepth, ParkedKey, Store};

/// How many parked keys of a tenant are read; far more than are ever parked at once.
const PARKED_MAX: usize = 10_000;

/// The source of a dead letter that was in the outbox.
const SOURCE: &str = "outbox";

/// The outbox, which [`SagaAdmin::outbox`](super::SagaAdmin::outbox) returns: how many messages wait, and the ordering keys
/// of one tenant whose next message cannot be sent. On a bare store, a released message waits for a runtime.
pub struct OutboxAdmin<S: Store>(TenantStore<S>);

impl<S: Store> OutboxAdmin<S> {
    pub(super) fn new(tenant_store: TenantStore<S>) -> Self {
        Self(tenant_store)
    }

    /// How many messages of all tenants wait, since when the oldest does, and how many ordering keys are parked.
    ///
    /// # Errors
    /// When the store fails.
    ///
    /// # Cancel safety
    /// It only reads.
    pub async fn depth(&self) -> Result<OutboxDepth, RuntimeError> {
        outside_step()?;
        Ok(self.0.store.depth().await?)
    }

    /// The ordering keys whose next message could not be sent, each with its attempts and its error, and with the time at
    /// which the relay tries it again. A key without such a time waits until an operator releases or discards its message.
    ///
    /// # Errors
    /// When the store fails.
    ///
    /// # Cancel safety
    /// It only reads.
    pub async fn parked(&self) -> Result<Vec<ParkedKey>, RuntimeError> {
        outside_step()?;
        Ok(self.0.store.parked(Some(&self.0.tenant), PARKED_MAX).await?)
    }

    /// Lets the relay try the key of this message again. Returns whether it was parked.
    ///
    /// # Errors
    /// When the store fails.
    ///
    /// # Cancel safety
    /// When dropped, it was released or not; the same call again acts once.
    pub async fn release(&self, message: MessageId) -> Result<bool, RuntimeError> {
        if !self.is_parked(message).await? {
            return Ok(false);
        }
        let was_parked = self.0.store.release(message).await?;
        self.0.wake_relay();
        Ok(was_parked)
    }

    /// Discards this message of a parked key, so that the relay sends the messages behind it. Returns whether it was parked.
    /// The message stays among the dead letters, as discarded for this reason.
    ///
    /// # Errors
    /// When no reason is given, or the store fails.
    ///
    /// # Cancel safety
    /// When dropped, it was discarded or not; the same call again acts once.
    pub async fn discard(&self, message: MessageId, reason: &str) -> Result<bool, RuntimeError> {
        if let Some(problem) = reason_problem(reason, "the message") {
            return Err(RuntimeError::Parked { message, problem });
        }
        let Some(key) = self.parked().await?.into_iter().find(|key| key.message == message) else { return Ok(false) };
        let id = DeadLetterId(self.0.store.reserve_ids(1).await?.start);
        let was_parked = self.0.store.discard(message, &letter_of(key, id), reason).await?;
        if was_parked {
            log::warn!(message_id = %message, reason, "outbox message discarded");
        }
        self.0.wake_relay();
        Ok(was_parked)
    }

    async fn is_parked(&self, message: MessageId) -> Result<bool, RuntimeError> {
        Ok(self.parked().await?.iter().any(|key| key.message == message))
    }
}

fn letter_of(key: ParkedKey, id: DeadLetterId) -> NewDeadLetter {
    let message = key.message;
    let headers = [("message-id", message.to_string()), ("topic", key.aggregate_type), ("key", key.aggregate_id)];
    let fingerprint = fingerprint_of(SOURCE, message);
    NewDeadLetter {
        tenant: key.tenant,
        headers: headers.map(|(name, text)| (name.to_owned(), text)).into(),
        attempts: key.attempts,
        ..NewDeadLetter::new(id, fingerprint, DeadLetterReason::Unsendable, &key.error, SOURCE)
    }
}

impl<S: Store> fmt::Debug for OutboxAdmin<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutboxAdmin").field("tenant", &self.0.tenant).finish_non_exhaustive()
    }
}
