//! Reports of steps that are hosted for another service: they are told to it, which keeps them on the row that waits for
//! the reply.
//!
//! Nothing rests on them. The host keeps its own, which is where the next call goes on; one that is lost on its way, or
//! comes when its step is over, is only not shown.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::arrivals::InboundMessage;
use super::command::WorkItem;
use super::in_flight::SagaInstance;
use super::letters::HandleError;
use super::replies::told;
use super::shared::EngineContext;
use crate::key::Key;
use crate::log;
use crate::store::{Changes, DeadLetterReason, Store, WorkId};

/// The bits that the number of a report has; those above are of the fence, which grows from one owner to the next.
const NUMBER_BITS: u32 = 32;
/// The highest fence that a number says: the stores keep numbers of 63 bits.
const FENCE_MAX: u64 = (1 << 31) - 1;

/// A report as it travels.
#[derive(Serialize, Deserialize)]
struct Content<'a> {
    /// Higher than that of every report before it, whoever made it.
    number: u64,
    #[serde(borrow)]
    report: &'a RawValue,
}

impl<S: Store> EngineContext<S> {
    /// Tells the service that asked for the step what was just written down here. The call does not wait for that.
    pub(super) fn tell_report(self: &Arc<Self>, command: &WorkItem<S>, number: u64, report: &[u8]) {
        let Some(payload) = content(command.fence(), number, report) else { return };
        let Some(message) = self.report_message(&command.saga, command.is_undo(), payload) else { return };
        let (shared, under_way) = (Arc::clone(self), self.tasks.enter());
        self.spawn(
            "report",
            Box::pin(async move {
                match shared.recorder.record(Changes { messages: vec![message], ..Changes::default() }).await {
                    Ok(_) => shared.wake_relay(),
                    Err(error) => log::debug!(%error, "a report is not told; the next one will be"),
                }
                drop(under_way);
            }),
        );
    }

    /// Keeps what a host reports on the row that waits for its reply. What is over, or not known here, is passed over.
    pub(super) async fn handle_report(self: &Arc<Self>, arrived: &InboundMessage) -> Result<(), HandleError> {
        let message = &arrived.message;
        let unreadable = |problem: String| HandleError::Dead(DeadLetterReason::Unreadable, problem);
        let key = Key::from_message(message.headers.saga_key.as_deref().unwrap_or_default());
        let key = key.map_err(|problem| unreadable(problem.to_string()))?;
        let content: Content<'_> =
            serde_json::from_slice(&message.payload).map_err(|error| unreadable(format!("its content: {error}")))?;
        // It would come with every claim of the row. The host's own limit may be another one.
        if content.report.get().len() > self.settings.report_bytes_max {
            return self.drop_reply(arrived, "it is longer than `report_bytes_max` allows here").await;
        }
        let Some(stored) = self.store.saga_with_steps(&message.tenant, &key).await? else {
            return self.drop_reply(arrived, "there is no saga with its key").await;
        };
        let definition = self.definitions.get(&stored.saga.definition);
        let saga = definition.and_then(|known| SagaInstance::of_row(&stored.saga, Vec::new(), known).ok());
        let waiting = saga.and_then(|saga| told(&saga, message)).map(|(_, told)| WorkId(told.sent.work));
        let Some(row) = stored.work.iter().find(|row| Some(row.work.id) == waiting) else {
            return self.drop_reply(arrived, "nobody waits for its reply").await;
        };
        // One that a later report outran, or whose row was sent again at this moment, is passed over too.
        let is_kept = self.store.report(row.work, content.number, content.report.get().as_bytes(), None).await?;
        self.drop_reply(arrived, if is_kept { "it is a report" } else { "a later report is there" }).await
    }
}

fn content(fence: u64, number: u64, report: &[u8]) -> Option<Vec<u8>> {
    let number = fence.min(FENCE_MAX) << NUMBER_BITS | number & u64::from(u32::MAX);
    serde_json::to_vec(&Content { number, report: serde_json::from_slice(report).ok()? }).ok()
}
