//! Handles the progress reports of a host.

use std::sync::Arc;

use super::coordinator::Coordinator;
use super::reply::answered_command;
use crate::engine::instance::SagaInstance;
use crate::engine::message::{Content, HandleError, InboundMessage};
use crate::key::Key;
use crate::store::{DeadLetterReason, Store, WorkId};

impl<S: Store> Coordinator<S> {
    /// Stores a report on the work row that waits for the reply. A report for a step that is over, or not known here, is ignored.
    pub(crate) async fn handle_report(self: &Arc<Self>, inbound: &InboundMessage) -> Result<(), HandleError> {
        let message = &inbound.message;
        let unreadable = |problem: String| HandleError::Dead(DeadLetterReason::Unreadable, problem);
        let key = Key::from_message(message.headers.saga_key.as_deref().unwrap_or_default());
        let key = key.map_err(|problem| unreadable(problem.to_string()))?;
        let content: Content<'_> =
            serde_json::from_slice(&message.payload).map_err(|error| unreadable(format!("its content: {error}")))?;
        // Each claim of the row reads it. The host's own limit may be higher.
        if content.report.get().len() > self.ctx.settings.report_bytes_max {
            return self.drop_reply(inbound, "it is longer than `report_bytes_max` allows here").await;
        }
        let Some(stored) = self.ctx.store.saga_with_steps(&message.tenant, &key).await? else {
            return self.drop_reply(inbound, "there is no saga with its key").await;
        };
        let definition = self.ctx.definitions.get(&stored.saga.definition);
        let saga = definition.and_then(|known| SagaInstance::of_row(&stored.saga, Vec::new(), known).ok());
        let waiting =
            saga.and_then(|saga| answered_command(&saga, message)).map(|(_, answered)| WorkId(answered.sent.work));
        let Some(row) = stored.work.iter().find(|row| Some(row.work.id) == waiting) else {
            return self.drop_reply(inbound, "no step waits for its reply").await;
        };
        // An older report is ignored, and so is one whose row is sent again at this moment.
        let is_kept = self.ctx.store.report(row.work, content.number, content.report.get().as_bytes(), None).await?;
        self.drop_reply(inbound, if is_kept { "it is a report" } else { "a later report is there" }).await
    }
}
