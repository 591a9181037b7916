//! What a person can see of, and do with, what waits to be sent.

use std::fmt;
use std::sync::Arc;

use super::audit::reason_problem;
use super::tenant_store::{AdminRuntime, TenantStore};
use crate::engine::context::{RuntimeError, outside_step};
use crate::engine::message::fingerprint_of;
use crate::key::Tenant;
use crate::log;
use crate::store::{DeadLetterId, DeadLetterReason, MessageId, NewDeadLetter, OutboxDepth, ParkedKey, Store};

/// More keys than are ever parked at once: those of other tenants are among them.
const PARKED_MAX: usize = 10_000;

/// Where a letter comes from that was to leave.
const SOURCE: &str = "outbox";

/// The outbox: how much waits, and the ordering keys of one tenant whose next message cannot be sent. It needs no
/// runtime, only a store: what is released waits for one.
pub struct OutboxAdmin<S: Store>(TenantStore<S>);

impl<S: Store> OutboxAdmin<S> {
    /// The outbox of this store, and the parked keys of the default tenant.
    pub fn new(store: impl Into<Arc<S>>) -> Self {
        Self(TenantStore::new(store.into()))
    }

    pub(crate) fn of(runtime: AdminRuntime<S>, tenant: &Tenant) -> Self {
        Self(TenantStore::of(runtime, tenant))
    }

    /// Looks at the parked keys of this tenant.
    #[must_use]
    pub fn tenant(mut self, tenant: Tenant) -> Self {
        self.0.tenant = tenant;
        self
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
    /// which it is tried again by itself. One without such a time waits to be released or discarded.
    ///
    /// # Errors
    /// When the store fails.
    ///
    /// # Cancel safety
    /// It only reads.
    pub async fn parked(&self) -> Result<Vec<ParkedKey>, RuntimeError> {
        outside_step()?;
        let mut parked = self.0.store.parked(PARKED_MAX).await?;
        parked.retain(|key| key.tenant == self.0.tenant);
        Ok(parked)
    }

    /// Lets the key of this message try again; answers whether it was parked.
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

    /// Gives this message of a parked key up, so that the key goes on behind it; answers whether it was parked. The
    /// message stays among the dead letters, as discarded for this reason.
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
    NewDeadLetter {
        id,
        fingerprint: fingerprint_of(SOURCE, message),
        tenant: key.tenant,
        reason: DeadLetterReason::Unsendable,
        detail: key.error,
        source: SOURCE.to_owned(),
        headers: headers.map(|(name, text)| (name.to_owned(), text)).into(),
        payload: Vec::new(),
        message: None,
        attempts: key.attempts,
    }
}

impl<S: Store> fmt::Debug for OutboxAdmin<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutboxAdmin").field("tenant", &self.0.tenant).finish_non_exhaustive()
    }
}
