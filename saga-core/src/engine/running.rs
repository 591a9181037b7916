use std::fmt;
use std::sync::Arc;

use super::error::RuntimeError;
use super::outcome::Outcome;
use super::shared::Shared;
use super::waiters::{Gone, Slot};
use crate::key::Key;
use crate::store::{SagaId, Store};

/// A saga that was started, or was there already. Dropping it changes nothing for the saga.
pub struct Running<S: Store> {
    shared: Arc<Shared<S>>,
    slot: Arc<Slot>,
    id: SagaId,
    key: Key,
    already_known: bool,
}

impl<S: Store> Running<S> {
    pub(super) fn new(shared: &Arc<Shared<S>>, slot: Arc<Slot>, id: SagaId, key: Key, already_known: bool) -> Self {
        Self { shared: Arc::clone(shared), slot, id, key, already_known }
    }

    /// The saga's key.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The saga's row.
    pub fn id(&self) -> SagaId {
        self.id
    }

    /// Whether the key was known before this start.
    pub fn already_known(&self) -> bool {
        self.already_known
    }

    /// Waits until the saga has ended or needs a person. That it is stuck is not final: see [`Running::ended`].
    ///
    /// # Errors
    /// When the runtime ends first; the saga goes on when a runtime runs again. And [`RuntimeError::Lost`], when the
    /// store does not have the saga any more.
    ///
    /// # Cancel safety
    /// Nothing is lost when it is dropped.
    pub async fn outcome(&self) -> Result<Outcome, RuntimeError> {
        self.wait(|_| true).await
    }

    /// Waits until the saga has ended, also beyond being stuck.
    ///
    /// # Errors
    /// When the runtime ends first; the saga goes on when a runtime runs again. And [`RuntimeError::Lost`], when the
    /// store does not have the saga any more.
    ///
    /// # Cancel safety
    /// Nothing is lost when it is dropped.
    pub async fn ended(&self) -> Result<Outcome, RuntimeError> {
        self.wait(|outcome| !matches!(outcome, Outcome::Stuck { .. })).await
    }

    async fn wait(&self, is_enough: impl Fn(&Outcome) -> bool) -> Result<Outcome, RuntimeError> {
        if super::guard::is_inside_step() {
            return Err(RuntimeError::InsideStep);
        }
        tokio::select! {
            biased;
            outcome = self.slot.outcome(is_enough) => {
                outcome.map_err(|Gone| RuntimeError::Lost { key: self.key.to_string() })
            }
            () = self.shared.stopped.cancelled() => Err(RuntimeError::Ended),
        }
    }
}

impl<S: Store> fmt::Debug for Running<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running")
            .field("key", &self.key)
            .field("already_known", &self.already_known)
            .finish_non_exhaustive()
    }
}
