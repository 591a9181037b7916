//! The result of a sub-saga, which is the output of its step.

use std::sync::Arc;

use super::sub_sagas::SubSagas;
use crate::engine::decide::made_result;
use crate::engine::instance::SagaInstance;
use crate::engine::store_calls::or_unreadable;
use crate::machine::{KeptResult, SagaState};
use crate::saga::Definition;
use crate::store::{SagaRow, Store};

/// The result of a saga that returns `()`.
const NOTHING: &[u8] = b"null";

impl<S: Store> SubSagas<S> {
    /// What a completed sub-saga returned. A version of this crate that kept no results may have completed it, or an operator:
    /// then the result is made of its records.
    pub(super) async fn result_of_child(
        self: &Arc<Self>,
        row: &SagaRow,
        state: &SagaState,
        definition: &Arc<Definition<S>>,
    ) -> Option<Result<Vec<u8>, String>> {
        Some(match (state.result.as_deref(), &definition.result) {
            (Some(KeptResult::Value(value)), _) => Ok(value.clone().into_bytes()),
            (Some(KeptResult::NotMade(reason)), _) => Err(reason.clone()),
            (None, None) => Ok(NOTHING.to_vec()),
            (None, Some(result)) => {
                let saga = self.instance_of_child(row, definition).await?;
                saga.and_then(|saga| made_result(&saga, result))
            }
        })
    }

    pub(super) async fn instance_of_child(
        self: &Arc<Self>,
        row: &SagaRow,
        definition: &Arc<Definition<S>>,
    ) -> Option<Result<SagaInstance<S>, String>> {
        let read = || or_unreadable(self.ctx.store.records_of(&row.tenant, &row.key));
        let records = self.records.committer.store_calls.retry_store("records_of", read).await?;
        let unreadable = |error| format!("the records of the saga `{}` cannot be read: {error}", row.key);
        Some(records.map_err(unreadable).and_then(|records| SagaInstance::of_row(row, records, definition)))
    }
}
