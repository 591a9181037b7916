//! Epochs in memory.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use super::contract::Epochs;

/// Epochs that end with the process, for tests: after a restart of the process, tokens of locks begin anew if Redis lost its
/// data as well. Clones are the same epochs.
#[derive(Debug, Clone, Default)]
pub struct MemoryEpochs(Arc<Mutex<BTreeMap<u16, u64>>>);

#[async_trait]
impl Epochs for MemoryEpochs {
    async fn raise(&self, slot: u16, above: u64) -> Result<u64, Box<dyn Error + Send + Sync>> {
        let mut epochs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let epoch = epochs.entry(slot).or_default();
        *epoch = above.max(*epoch) + 1;
        Ok(*epoch)
    }

    async fn current(&self, slot: u16) -> Result<u64, Box<dyn Error + Send + Sync>> {
        let epochs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(epochs.get(&slot).copied().unwrap_or_default())
    }
}
