//! Signals for the steps that wait for them.

use sha2::{Digest, Sha256};

use super::decider::Decider;
use crate::engine::instance::{AttemptDetails, NextWork, PendingCommit, SagaInstance};
use crate::machine::{Event, Refused};
use crate::store::{HistoryEntry, HistoryKind, Store};

impl<S: Store> Decider<S> {
    /// Delivers a signal to the step that waits for it. The signal counts once, by its id.
    pub(crate) fn decide_signal(
        &self,
        saga: &mut SagaInstance<S>,
        step: usize,
        id: &str,
        payload: &[u8],
    ) -> Result<PendingCommit<S>, Refused> {
        let event = Event::Signalled { step, id: hash_of(id) };
        let details = AttemptDetails {
            output: Some(payload.to_vec()),
            signal_id: Some(id.to_owned()),
            ..AttemptDetails::default()
        };
        let mut pending = self.decide(saga, event, &details, NextWork::none())?;
        pending.changes.history.push(HistoryEntry {
            saga: saga.id,
            step: Some(saga.doing(step)),
            kind: HistoryKind::Signal,
            attempt: 0,
            detail: format!("{id:?} was received"),
        });
        Ok(pending)
    }
}

/// The id as the saga's state keeps it, whatever its length.
fn hash_of(id: &str) -> u128 {
    let hash = Sha256::digest(id.as_bytes());
    hash.iter().take(16).fold(0, |all, byte| all << 8 | u128::from(*byte))
}
