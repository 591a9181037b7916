//! What an application does with its sagas after their start, and the way to everything that operators do.

use super::runtime::Runtime;
use crate::engine::admin::{AdminContext, ControlOutcome, SagaAdmin, SagaStatus, SignalOutcome};
use crate::engine::context::RuntimeError;
use crate::step::Signal;
use crate::store::Store;

impl<S: Store> Runtime<S> {
    /// Everything that operators do: queries, control of one saga or of many, dead letters and the outbox.
    pub fn admin(&self) -> SagaAdmin<S> {
        AdminContext::of(self.engine.admin(), &self.tenant).into()
    }

    /// What happened to the saga with this key, step by step; `None` if there is no such saga. Lists, counts and the
    /// audit log are in [`SagaAdmin::query`].
    ///
    /// # Errors
    /// Those of [`SagaQuery::status`](crate::engine::SagaQuery::status).
    ///
    /// # Cancel safety
    /// It only reads.
    pub async fn status(&self, key: impl AsRef<str>) -> Result<Option<SagaStatus>, RuntimeError> {
        self.admin().query().status(key).await
    }

    /// Sends a signal to the saga with this key, as [`SagaControl::signal`](crate::engine::SagaControl::signal) does.
    ///
    /// # Errors
    /// Those of [`SagaControl::signal`](crate::engine::SagaControl::signal).
    ///
    /// # Cancel safety
    /// When dropped, the signal was received or not; the same call again says which.
    pub async fn signal<T: Signal>(
        &self,
        key: impl AsRef<str>,
        id: impl AsRef<str>,
        signal: &T,
    ) -> Result<SignalOutcome, RuntimeError> {
        self.admin().control(key).signal(id, signal).await
    }

    /// Cancels the saga with this key, as [`SagaControl::cancel`](crate::engine::SagaControl::cancel) does: it starts
    /// compensating. To record who cancelled it, use [`Runtime::admin`].
    ///
    /// # Errors
    /// Those of [`SagaControl::cancel`](crate::engine::SagaControl::cancel).
    ///
    /// # Cancel safety
    /// When dropped, the saga was cancelled or not; the same call again says which.
    pub async fn cancel(&self, key: impl AsRef<str>, reason: &str) -> Result<ControlOutcome, RuntimeError> {
        self.admin().control(key).cancel(reason).await
    }
}
