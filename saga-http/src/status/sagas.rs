//! What the routes read, for any store.

use std::sync::Arc;

use async_trait::async_trait;
use saga_core::engine::{SagaAdmin, SagaMoves, SagaSummary};
use saga_core::store::{DeadLetter, DeadLetterFilter, DeadLetterId, SagaFilter, SagaId, SagaProgress, Store};
use saga_core::{RuntimeError, SagaStatus, Tenant};

/// The sagas of one tenant.
#[async_trait]
pub(super) trait Sagas: Send + Sync {
    fn of_tenant(&self, tenant: Tenant) -> Arc<dyn Sagas>;

    async fn status(&self, key: &str) -> Result<Option<SagaStatus>, RuntimeError>;

    async fn summary(&self, key: &str) -> Result<Option<SagaSummary>, RuntimeError>;

    async fn list(&self, filter: SagaFilter) -> Result<Vec<SagaSummary>, RuntimeError>;

    async fn progress(&self, sagas: &[SagaId]) -> Result<Vec<SagaProgress>, RuntimeError>;

    /// Waits for changes of the saga, if a runtime in this process tells them.
    fn moves(&self, saga: SagaId) -> Option<Box<dyn Moves>>;

    async fn dead_letters(&self, filter: DeadLetterFilter) -> Result<Vec<DeadLetter>, RuntimeError>;

    async fn dead_letter(&self, id: DeadLetterId) -> Result<Option<DeadLetter>, RuntimeError>;
}

/// The changes of one saga, as the runtime in this process learns of them.
#[async_trait]
pub(super) trait Moves: Send {
    /// Waits for the next one.
    ///
    /// # Cancel safety
    /// Nothing is lost when it is dropped.
    async fn next(&mut self) -> Result<(), RuntimeError>;
}

#[async_trait]
impl<S: Store> Sagas for SagaAdmin<S> {
    fn of_tenant(&self, tenant: Tenant) -> Arc<dyn Sagas> {
        Arc::new(self.clone().tenant(tenant))
    }

    async fn status(&self, key: &str) -> Result<Option<SagaStatus>, RuntimeError> {
        self.query().status(key).await
    }

    async fn summary(&self, key: &str) -> Result<Option<SagaSummary>, RuntimeError> {
        self.query().summary(key).await
    }

    async fn list(&self, filter: SagaFilter) -> Result<Vec<SagaSummary>, RuntimeError> {
        self.query().list(filter).await
    }

    async fn progress(&self, sagas: &[SagaId]) -> Result<Vec<SagaProgress>, RuntimeError> {
        self.query().progress(sagas).await
    }

    fn moves(&self, saga: SagaId) -> Option<Box<dyn Moves>> {
        Some(Box::new(self.query().moves(saga)?))
    }

    async fn dead_letters(&self, filter: DeadLetterFilter) -> Result<Vec<DeadLetter>, RuntimeError> {
        self.dead_letters().list(filter).await
    }

    async fn dead_letter(&self, id: DeadLetterId) -> Result<Option<DeadLetter>, RuntimeError> {
        self.dead_letters().show(id).await
    }
}

#[async_trait]
impl<S: Store> Moves for SagaMoves<S> {
    async fn next(&mut self) -> Result<(), RuntimeError> {
        Self::next(self).await
    }
}
