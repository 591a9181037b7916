//! The control of one saga.

use std::fmt;

use crate::engine::admin::admin_context::AdminContext;
use crate::store::Store;

/// What an operator can do with one saga: [`SagaAdmin::control`](crate::engine::admin::SagaAdmin::control) returns it.
///
/// An action is about the saga as it is when the action is made. With [`at_revision`](Self::at_revision) it is about the
/// saga as the operator saw it: if the saga has moved since, nothing is changed, and so the same action twice acts once.
/// Each action is recorded in the history of the saga.
///
/// # Errors
/// Every action fails if the key is not a legal one, there is no such saga, its definition is not known here, or the
/// store fails. Every action but a signal needs a reason, and refuses an empty one.
pub struct SagaControl<S: Store> {
    pub(in crate::engine::admin) ctx: AdminContext<S>,
    pub(in crate::engine::admin) key: String,
    /// The revision that the saga must have.
    pub(in crate::engine::admin) seen: Option<u64>,
}

impl<S: Store> SagaControl<S> {
    /// Acts only if the saga is still at this revision ([`SagaStatus::revision`](crate::engine::admin::SagaStatus::revision)). Otherwise
    /// the action fails with [`RuntimeError::Moved`](crate::engine::RuntimeError::Moved).
    #[must_use]
    pub fn at_revision(self, revision: u64) -> Self {
        Self { seen: Some(revision), ..self }
    }
}

impl<S: Store> fmt::Debug for SagaControl<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SagaControl").field("key", &self.key).field("revision", &self.seen).finish_non_exhaustive()
    }
}
