use async_trait::async_trait;
use saga_core::key::{Key, Tenant};
use saga_core::memory::MemoryConn;
use saga_core::store::{
    AuditFilter, AuditRow, Changes, Ids, NewMessage, NewSaga, Records, SagaFilter, SagaId, SagaProgress, SagaRow,
    SagaWithSteps, Sagas, StartIn, Started, Status, StoreError, StoreErrorKind, WorkId,
};

use super::{FaultyStore, StoreFlaw};

#[async_trait]
impl Sagas for FaultyStore {
    async fn start(&self, sagas: Vec<NewSaga>) -> Result<Vec<Started>, StoreError> {
        let mut sagas = sagas;
        for saga in &sagas {
            self.free_key_of_tombstone(saga).await?;
        }
        for saga in &mut sagas {
            self.noted().tenants.insert(saga.tenant.clone());
            self.noted().definitions.insert(saga.definition.clone());
            if self.has(StoreFlaw::DropsCommands) {
                saga.commands.clear();
            }
            for command in &mut saga.commands {
                self.note_command(command);
            }
        }
        if self.has(StoreFlaw::RefusesHostedKeys) && sagas.iter().any(|saga| saga.key.as_str().contains('>')) {
            return Err(StoreError::new(StoreErrorKind::Misuse, "start", "the key has a `>`"));
        }
        let mut answers = if self.has(StoreFlaw::WaitsForKeys) {
            self.waiting(|| self.inner.start(sagas.clone())).await?
        } else {
            self.inner.start(sagas).await?
        };
        if self.has(StoreFlaw::StartsTwice) {
            answers.fill(Started::New);
        }
        if self.has(StoreFlaw::ReversesAnswers) {
            answers.reverse();
        }
        Ok(answers)
    }

    async fn saga(&self, tenant: &Tenant, key: &Key) -> Result<Option<SagaRow>, StoreError> {
        let mut found = self.inner.saga(tenant, key).await?;
        if self.has(StoreFlaw::LosesTheTenantOfTombstones) {
            let tombstone = found.iter_mut().filter(|row| row.is_tombstone());
            tombstone.for_each(|row| row.tenant = Tenant::default());
        }
        if found.is_some() || !self.has(StoreFlaw::CrossesTenants) {
            return Ok(found);
        }
        let tenants = self.noted().tenants.clone();
        for tenant in &tenants {
            if let Some(row) = self.inner.saga(tenant, key).await? {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    async fn saga_with_steps(&self, tenant: &Tenant, key: &Key) -> Result<Option<SagaWithSteps>, StoreError> {
        self.inner.saga_with_steps(tenant, key).await
    }

    async fn progress(&self, ids: &[SagaId]) -> Result<Vec<SagaProgress>, StoreError> {
        let mut standings = self.inner.progress(ids).await?;
        if self.has(StoreFlaw::ReportsTheFirstVersion) {
            for standing in &mut standings {
                standing.version = 1;
            }
        }
        Ok(standings)
    }

    async fn sagas_by_id(&self, ids: &[SagaId]) -> Result<Vec<SagaRow>, StoreError> {
        self.inner.sagas_by_id(ids).await
    }

    async fn list(&self, filter: &SagaFilter) -> Result<Vec<SagaRow>, StoreError> {
        if filter.failing.is_some() && self.has(StoreFlaw::ListsNoneAsFailing) {
            return Ok(Vec::new());
        }
        if !self.has(StoreFlaw::ListsEveryTenant) {
            return self.inner.list(filter).await;
        }
        let tenants = self.noted().tenants.clone();
        let mut rows = Vec::new();
        for tenant in tenants {
            rows.extend(self.inner.list(&SagaFilter { tenant, ..filter.clone() }).await?);
        }
        rows.sort_by_key(|row| row.id);
        rows.truncate(filter.limit);
        Ok(rows)
    }

    async fn count(&self, tenant: &Tenant) -> Result<Vec<(Status, u64)>, StoreError> {
        let mut counts = self.inner.count(tenant).await?;
        counts.retain(|(status, _)| *status != Status::Stuck || !self.has(StoreFlaw::CountsNoStuck));
        Ok(counts)
    }

    async fn orphaned(&self, limit: usize) -> Result<Vec<SagaId>, StoreError> {
        if self.has(StoreFlaw::FindsNoOrphans) { Ok(Vec::new()) } else { self.inner.orphaned(limit).await }
    }

    async fn audit_log(&self, filter: &AuditFilter) -> Result<Vec<AuditRow>, StoreError> {
        let mut acts = self.inner.audit_log(filter).await?;
        if self.has(StoreFlaw::ReversesTheAuditLog) {
            acts.reverse();
        }
        Ok(acts)
    }
}

#[async_trait]
impl StartIn for FaultyStore {
    async fn start_in(&self, conn: &mut MemoryConn, saga: NewSaga) -> Result<Started, StoreError> {
        if self.has(StoreFlaw::StartsOutside) {
            return self.start_apart(saga).await;
        }
        let mut saga = saga;
        if self.has(StoreFlaw::NumbersBackwards) {
            saga.commands.reverse();
        }
        let started = self.inner.start_in(conn, saga.clone()).await;
        match &started {
            Err(error) if error.kind() == StoreErrorKind::Misuse && self.has(StoreFlaw::AcceptsBareConnections) => {
                self.start_apart(saga).await
            }
            Ok(Started::AlreadyExists(_)) if self.has(StoreFlaw::EndsTheCallersTransaction) => {
                conn.end_transaction();
                started
            }
            _ => started,
        }
    }

    async fn publish_in(&self, conn: &mut MemoryConn, message: NewMessage) -> Result<(), StoreError> {
        if self.has(StoreFlaw::PublishesOutside) {
            let changes = Changes { messages: vec![NewMessage { position: 1, ..message }], ..Changes::default() };
            return self.inner.record(vec![changes]).await.map(drop);
        }
        if self.has(StoreFlaw::PublishesUncounted) {
            // A key of its own for each message: every one is the first.
            let aggregate_id = format!("{}/{}", message.aggregate_id, message.id);
            return self.inner.publish_in(conn, NewMessage { aggregate_id, ..message }).await;
        }
        self.inner.publish_in(conn, message).await
    }
}

impl FaultyStore {
    /// Starts a saga in a commit of its own.
    async fn start_apart(&self, mut saga: NewSaga) -> Result<Started, StoreError> {
        let ids = self.inner.reserve_ids(2).await?;
        saga.id = SagaId(ids.start);
        for command in &mut saga.commands {
            (command.id, command.saga) = (WorkId(ids.start + 1), saga.id);
        }
        let mut started = self.inner.start(vec![saga]).await?;
        Ok(started.pop().unwrap_or(Started::New))
    }
}
