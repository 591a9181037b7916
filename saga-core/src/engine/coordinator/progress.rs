//! Progress that a host reports of a remote step.

use std::sync::Arc;

use super::coordinator::Coordinator;
use super::reply::told;
use crate::engine::instance::SagaInstance;
use crate::engine::message::{Content, HandleError, InboundMessage};
use crate::key::Key;
use crate::store::{DeadLetterReason, Store, WorkId};

impl<S: Store> Coordinator<S> {
    /// Keeps what a host reports on the row that waits for its reply. What is over, or not known here, is passed over.
    pub(crate) async fn handle_report(self: &Arc<Self>, arrived: &InboundMessage) -> Result<(), HandleError> {
        let message = &arrived.message;
        let unreadable = |problem: String| HandleError::Dead(DeadLetterReason::Unreadable, problem);
        let key = Key::from_message(message.headers.saga_key.as_deref().unwrap_or_default());
        let key = key.map_err(|problem| unreadable(problem.to_string()))?;
        let content: Content<'_> =
            serde_json::from_slice(&message.payload).map_err(|error| unreadable(format!("its content: {error}")))?;
        // It would come with every claim of the row. The host's own limit may be another one.
        if content.report.get().len() > self.ctx.settings.report_bytes_max {
            return self.drop_reply(arrived, "it is longer than `report_bytes_max` allows here").await;
        }
        let Some(stored) = self.ctx.store.saga_with_steps(&message.tenant, &key).await? else {
            return self.drop_reply(arrived, "there is no saga with its key").await;
        };
        let definition = self.ctx.definitions.get(&stored.saga.definition);
        let saga = definition.and_then(|known| SagaInstance::of_row(&stored.saga, Vec::new(), known).ok());
        let waiting = saga.and_then(|saga| told(&saga, message)).map(|(_, told)| WorkId(told.sent.work));
        let Some(row) = stored.work.iter().find(|row| Some(row.work.id) == waiting) else {
            return self.drop_reply(arrived, "no step waits for its reply").await;
        };
        // One that a later report outran, or whose row was sent again at this moment, is passed over too.
        let is_kept = self.ctx.store.report(row.work, content.number, content.report.get().as_bytes(), None).await?;
        self.drop_reply(arrived, if is_kept { "it is a report" } else { "a later report is there" }).await
    }
}
