use async_trait::async_trait;
use saga_core::Tenant;
use saga_core::store::{
    Applied, DefinitionId, Definitions, Miss, NewDefinition, SagaMigration, SagaWithSteps, Sagas, StoreError,
    StoredDefinition, Work, WorkRef,
};

use super::{FaultyStore, StoreFlaw};

#[async_trait]
impl Definitions for FaultyStore {
    async fn register(&self, definitions: Vec<NewDefinition>) -> Result<Vec<StoredDefinition>, StoreError> {
        let own = |new: &NewDefinition| StoredDefinition {
            id: new.id.clone(),
            digest: new.digest,
            shape: Some(new.shape.clone()),
        };
        let own: Vec<StoredDefinition> = definitions.iter().map(own).collect();
        let mut kept = self.inner.register(definitions).await?;
        if self.has(StoreFlaw::AcceptsAnyRegistration) {
            return Ok(own);
        }
        if self.has(StoreFlaw::RegistersBackwards) {
            kept.reverse();
        }
        Ok(kept)
    }

    async fn definitions(&self) -> Result<Vec<StoredDefinition>, StoreError> {
        let mut kept = self.inner.definitions().await?;
        if self.has(StoreFlaw::ListsDefinitionsBackwards) {
            kept.reverse();
        }
        Ok(kept)
    }

    async fn unfinished(&self, definitions: &[DefinitionId], limit: usize) -> Result<Vec<SagaWithSteps>, StoreError> {
        let mut sample = self.inner.unfinished(definitions, limit).await?;
        if self.has(StoreFlaw::SamplesTheDefaultTenant) {
            sample.retain(|stored| stored.saga.tenant == Tenant::default());
        }
        if self.has(StoreFlaw::SamplesWithoutRecords) {
            for stored in &mut sample {
                stored.records.clear();
            }
        }
        Ok(sample)
    }

    async fn migrate(&self, mut moved: SagaMigration) -> Result<Applied, StoreError> {
        if self.has(StoreFlaw::MigratesAnyVersion)
            && let Some(row) = self.inner.saga(&moved.tenant, &moved.key).await?
        {
            moved.expected = row.version;
        }
        if self.has(StoreFlaw::LosesMigratedRecords) {
            moved.rewritten.clear();
            moved.records.clear();
        }
        if self.has(StoreFlaw::LosesMigratedInputs) {
            moved.rewritten.iter_mut().for_each(|record| record.input = None);
        }
        if self.has(StoreFlaw::KeepsWorkAfterMigration) {
            moved.withdrawn.clear();
        }
        if !self.has(StoreFlaw::MigratesHeldWork) {
            return self.inner.migrate(moved).await;
        }
        match self.inner.migrate(moved.clone()).await? {
            Err(Miss::Work(id)) => {
                for epoch in 0..8 {
                    self.inner.release_work(&[WorkRef { id, epoch }]).await?;
                }
                self.inner.migrate(moved).await
            }
            applied => Ok(applied),
        }
    }
}
