//! The definitions of the store.

use async_trait::async_trait;

use super::MemoryStore;
use super::data::Data;
use super::migrate_saga::{is_written, migrate, miss};
use crate::store::{Applied, Definitions, NewDefinition, SagaMigration, StoreError, StoredDefinition};

#[async_trait]
impl Definitions for MemoryStore {
    async fn register(&self, definitions: Vec<NewDefinition>) -> Result<Vec<StoredDefinition>, StoreError> {
        self.writing("register", |data, _| {
            Some(Ok(definitions.iter().map(|definition| register(data, definition)).collect()))
        })
        .await
    }

    async fn definitions(&self) -> Result<Vec<StoredDefinition>, StoreError> {
        self.reading("definitions", |data, _| data.definitions.values().cloned().collect()).await
    }

    async fn migrate(&self, moved: SagaMigration) -> Result<Applied, StoreError> {
        let mut moved = Some(moved);
        self.writing("migrate", |data, now| {
            let wanted = moved.as_ref()?;
            if is_written(data, wanted) {
                return None;
            }
            if let Some(miss) = miss(data, wanted, now) {
                return Some(Ok(Err(miss)));
            }
            migrate(data, moved.take()?, now);
            Some(Ok(Ok(())))
        })
        .await
    }
}

fn register(data: &mut Data, new: &NewDefinition) -> StoredDefinition {
    let started = || data.sagas.values().map(|saga| &saga.row).filter(|row| row.definition == new.id);
    let stays = match data.definitions.get(&new.id) {
        Some(kept) if kept.digest == new.digest || started().next().is_some() => Some(kept.clone()),
        Some(_) => None,
        None => {
            let other = started().find(|row| !row.status.is_ended() && row.digest != new.digest);
            other.map(|row| StoredDefinition { id: new.id.clone(), digest: row.digest, shape: None })
        }
    };
    stays.unwrap_or_else(|| {
        let kept = StoredDefinition { id: new.id.clone(), digest: new.digest, shape: Some(new.shape.clone()) };
        data.definitions.insert(new.id.clone(), kept.clone());
        kept
    })
}
