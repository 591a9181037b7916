//! What an operator can do with messages that could not be handled.

use std::fmt;

use super::audit::reason_problem;
use super::tenant_store::TenantStore;
use crate::engine::context::{RuntimeError, outside_step};
use crate::store::{DeadLetter, DeadLetterFilter, DeadLetterId, DeadLetterState, Store, WorkId};

/// The dead letters of one tenant, which [`SagaAdmin::dead_letters`](super::SagaAdmin::dead_letters) returns. Every action
/// needs a reason, which is kept with the letter; the same action twice acts once. On a bare store, a replayed message
/// waits for a runtime.
pub struct DeadLetterAdmin<S: Store>(TenantStore<S>);

impl<S: Store> DeadLetterAdmin<S> {
    pub(super) fn new(tenant_store: TenantStore<S>) -> Self {
        Self(tenant_store)
    }

    /// The letters that pass the filter, oldest first. The tenant of the filter is ignored: it is that of the
    /// admin.
    ///
    /// # Errors
    /// When the store fails.
    ///
    /// # Cancel safety
    /// It only reads.
    pub async fn list(&self, filter: DeadLetterFilter) -> Result<Vec<DeadLetter>, RuntimeError> {
        outside_step()?;
        let filter = DeadLetterFilter { tenant: self.0.tenant.clone(), ..filter };
        Ok(self.0.store.dead_letters(&filter).await?)
    }

    /// The letter of that id.
    ///
    /// # Errors
    /// When the store fails.
    ///
    /// # Cancel safety
    /// It only reads.
    pub async fn show(&self, id: DeadLetterId) -> Result<Option<DeadLetter>, RuntimeError> {
        outside_step()?;
        Ok(self.0.store.dead_letter(&self.0.tenant, id).await?)
    }

    /// Puts the message into the inbox again, with the same id and the same keys, so nothing that it caused before is
    /// caused again. A message that still cannot be handled becomes another letter.
    ///
    /// # Errors
    /// When there is no such letter, it was discarded, it could not even be read, or the store fails.
    ///
    /// # Cancel safety
    /// When dropped, it was replayed or not; the same call again acts once.
    pub async fn replay(&self, id: DeadLetterId, reason: &str) -> Result<(), RuntimeError> {
        outside_step()?;
        let refused = |problem: &str| Err(RuntimeError::DeadLetter { letter: id.0, problem: problem.to_owned() });
        if let Some(problem) = reason_problem(reason, "the letter") {
            return refused(&problem);
        }
        let letter = self.0.store.dead_letter(&self.0.tenant, id).await?;
        let Some(letter) = letter else { return refused("there is none with this id") };
        if letter.letter.message.is_none() {
            return refused("the message is incomplete and cannot be handed in again; discard it");
        }
        let work = WorkId(self.0.store.reserve_ids(1).await?.start);
        match self.0.store.replay_dead_letter(&self.0.tenant, id, work, reason).await? {
            Some(DeadLetterState::Open | DeadLetterState::Replayed) => {
                self.0.wake_inbox();
                Ok(())
            }
            Some(DeadLetterState::Discarded) => refused("it was discarded"),
            None => refused("there is none with this id"),
        }
    }

    /// Decides that the message is not needed.
    ///
    /// # Errors
    /// When there is no such letter, it was replayed, or the store fails.
    ///
    /// # Cancel safety
    /// When dropped, it was discarded or not; the same call again acts once.
    pub async fn discard(&self, id: DeadLetterId, reason: &str) -> Result<(), RuntimeError> {
        outside_step()?;
        let refused = |problem: &str| Err(RuntimeError::DeadLetter { letter: id.0, problem: problem.to_owned() });
        if let Some(problem) = reason_problem(reason, "the letter") {
            return refused(&problem);
        }
        match self.0.store.discard_dead_letter(&self.0.tenant, id, reason).await? {
            Some(DeadLetterState::Open | DeadLetterState::Discarded) => Ok(()),
            Some(DeadLetterState::Replayed) => refused("it was replayed"),
            None => refused("there is none with this id"),
        }
    }
}

impl<S: Store> fmt::Debug for DeadLetterAdmin<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadLetterAdmin").field("tenant", &self.0.tenant).finish_non_exhaustive()
    }
}
