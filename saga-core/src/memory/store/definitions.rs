//! The definitions of the store.

use async_trait::async_trait;

use crate::memory::MemoryStore;
use crate::memory::statements::migrate_saga::{is_written, migrate, miss};
use crate::memory::tables::data::Data;
use crate::store::{
    Applied, DefinitionId, Definitions, NewDefinition, SagaId, SagaMigration, SagaRow, SagaWithSteps, Status,
    StoreError, StoredDefinition, Timestamp, oldest_and_newest,
};

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

    async fn unfinished(&self, definitions: &[DefinitionId], limit: usize) -> Result<Vec<SagaWithSteps>, StoreError> {
        self.reading("unfinished", |data, now| unfinished(data, definitions, limit, now)).await
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

fn unfinished(data: &Data, definitions: &[DefinitionId], limit: usize, now: Timestamp) -> Vec<SagaWithSteps> {
    let goes_on = |row: &SagaRow| matches!(row.status, Status::Running | Status::Compensating | Status::Paused);
    let of = |definition: &DefinitionId| -> Vec<SagaId> {
        let rows = data.sagas.values().map(|saga| &saga.row);
        let open = rows.filter(|row| goes_on(row) && row.definition == *definition).map(|row| row.id);
        oldest_and_newest(open.collect(), limit)
    };
    let mut ids: Vec<SagaId> = definitions.iter().flat_map(of).collect();
    ids.sort();
    let whole = |id: &SagaId| {
        let saga = data.sagas.get(id)?;
        let records = data.records_of_steps(&saga.row.tenant, &saga.row.key);
        Some(SagaWithSteps { records, history: Vec::new(), ..data.with_work(saga, now) })
    };
    ids.iter().filter_map(whole).collect()
}
