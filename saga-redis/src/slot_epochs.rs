//! The epochs of the slots, as this process has checked them.

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::epochs::{EpochTurn, Epochs};
use crate::error::LockError;
use crate::keys::SLOTS;
use crate::token::EPOCH_MAX;

/// The epoch in Redis is compared with the store before a token of it is used: one that a slow process began after another
/// one had begun a later epoch, and Redis had lost it, would give out tokens again.
pub(crate) struct SlotEpochs {
    epochs: Box<dyn Epochs>,
    /// The epoch of each slot that was the store's while it was in Redis, or 0.
    checked: Vec<AtomicU64>,
    turns: Vec<EpochTurn>,
}

impl SlotEpochs {
    pub(crate) fn new(epochs: impl Epochs) -> Self {
        Self {
            epochs: Box::new(epochs),
            checked: (0..SLOTS).map(|_| AtomicU64::new(0)).collect(),
            turns: (0..SLOTS).map(|_| EpochTurn::default()).collect(),
        }
    }

    /// The epoch of a slot of which tokens may be used.
    pub(crate) fn checked(&self, slot: u16) -> u64 {
        self.checked[usize::from(slot)].load(Ordering::Acquire)
    }

    /// Whose turn it is to begin an epoch of a slot.
    pub(crate) fn turn(&self, slot: u16) -> &EpochTurn {
        &self.turns[usize::from(slot)]
    }

    /// Compares the epoch that a slot has in Redis with the store, and says whether it is the last one.
    pub(crate) async fn check(&self, operation: &'static str, slot: u16, epoch: u64) -> Result<bool, LockError> {
        let current = self.epochs.current(slot).await.map_err(unreachable(operation))?;
        if current == epoch {
            self.checked[usize::from(slot)].store(epoch, Ordering::Release);
        }
        Ok(current == epoch)
    }

    /// A new epoch for a slot that had this one.
    pub(crate) async fn raise(&self, operation: &'static str, slot: u16, above: u64) -> Result<u64, LockError> {
        let epoch = self.epochs.raise(slot, above).await.map_err(unreachable(operation))?;
        if epoch > EPOCH_MAX {
            let problem =
                format!("slot {slot} had {EPOCH_MAX} epochs, and there are no more tokens; use another prefix");
            return Err(LockError::Epochs { operation, source: problem.into() });
        }
        Ok(epoch)
    }
}

fn unreachable(operation: &'static str) -> impl FnOnce(Box<dyn Error + Send + Sync>) -> LockError {
    move |source| LockError::Epochs { operation, source }
}
