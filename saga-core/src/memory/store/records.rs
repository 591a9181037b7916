//! The step records of the store.

use async_trait::async_trait;

use crate::key::{Key, StepId, Tenant};
use crate::memory::MemoryStore;
use crate::memory::statements::changes::{apply, blocked, miss, refuse_misuse};
use crate::store::{Applied, Changes, Records, StepRecord, StoreError};

#[async_trait]
impl Records for MemoryStore {
    async fn record(&self, changes: Vec<Changes>) -> Result<Vec<Applied>, StoreError> {
        let mut changes = changes;
        self.writing_shortly("record", |data, now| {
            if let Err(error) = refuse_misuse(data, "record", &changes, &[]) {
                return Some(Err(error));
            }
            if blocked(data, &changes, None).is_some() {
                return None;
            }
            let write = |change: Changes| {
                if let Some(miss) = miss(data, &change, &[]) {
                    return Err(miss);
                }
                apply(data, change, now);
                Ok(())
            };
            Some(Ok(std::mem::take(&mut changes).into_iter().map(write).collect()))
        })
        .await
    }

    async fn record_of(&self, tenant: &Tenant, key: &Key, step: &StepId) -> Result<Option<StepRecord>, StoreError> {
        self.reading("record_of", |data, _| data.record(tenant, key, step).cloned()).await
    }

    async fn records_of(&self, tenant: &Tenant, key: &Key) -> Result<Vec<StepRecord>, StoreError> {
        self.reading("records_of", |data, _| data.records_of(tenant, key)).await
    }

    async fn records_of_steps(&self, tenant: &Tenant, key: &Key) -> Result<Vec<StepRecord>, StoreError> {
        self.reading("records_of_steps", |data, _| data.records_of_steps(tenant, key)).await
    }
}
