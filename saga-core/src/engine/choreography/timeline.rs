//! Following sagas that are wired by events: what services report of their steps, and the events that mark a saga, are
//! joined to one timeline. It is kept as a row of `sagas` that has ended, since there is nothing to do for it.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::choreography::Choreography;
use crate::engine::commit::{CONFLICTS_MAX, ends, retry_on_conflict};
use crate::engine::message::{HandleError, InboundMessage, TIMELINES, timeline_key};
use crate::key::Key;
use crate::machine::{Fact, Mark, Timeline};
use crate::store::{Advance, Changes, DeadLetterReason, Expiry, Message, Miss, NewSaga, SagaId, Status, Store};

impl<S: Store> Choreography<S> {
    /// Joins what a service reports.
    pub(crate) async fn handle_fact(self: &Arc<Self>, arrived: &InboundMessage) -> Result<(), HandleError> {
        let message = &arrived.message;
        let (step, service) = (message.headers.step.as_deref(), message.headers.reply_to.as_deref());
        let (step, service) = (step.unwrap_or_default(), service.unwrap_or_default());
        let fact: Fact = serde_json::from_slice(&message.payload)
            .map_err(|error| HandleError::Dead(DeadLetterReason::Undecodable, format!("it is no report: {error}")))?;
        self.join(arrived, |timeline| timeline.note_fact(service, step, fact.clone(), message.committed_at)).await
    }

    /// Joins an event that marks a saga.
    pub(crate) async fn handle_mark(self: &Arc<Self>, mark: Mark, arrived: &InboundMessage) -> Result<(), HandleError> {
        let message = &arrived.message;
        self.join(arrived, |timeline| timeline.note_event(&message.event_type, mark, message.committed_at)).await
    }

    pub(crate) async fn join(
        self: &Arc<Self>,
        arrived: &InboundMessage,
        note: impl Fn(&mut Timeline) + Sync,
    ) -> Result<(), HandleError> {
        let message = &arrived.message;
        let key = Key::from_message(message.headers.saga_key.as_deref().unwrap_or_default());
        let key = key.map_err(|problem| HandleError::Dead(DeadLetterReason::Unreadable, problem.to_string()))?;
        let key = timeline_key(&key);
        let joined = retry_on_conflict(CONFLICTS_MAX, || async {
            Ok::<_, HandleError>(ends(self.join_once(&key, arrived, &note).await?))
        });
        let later = || HandleError::Later { why: "its timeline moves all the time".to_owned(), is_counted: false };
        joined.await?.ok_or_else(later)
    }

    /// Joins a message to the timeline as it is; false where another message was joined first.
    async fn join_once(
        &self,
        key: &Key,
        arrived: &InboundMessage,
        note: &(impl Fn(&mut Timeline) + Sync),
    ) -> Result<bool, HandleError> {
        let message = &arrived.message;
        let row = self.ctx.store.saga(&message.tenant, key).await?;
        let before = row.as_ref().map(|row| Timeline::decode(&row.state)).transpose();
        let before = before.map_err(|why| HandleError::Later { why, is_counted: true })?;
        let mut timeline = before.clone().unwrap_or_default();
        note(&mut timeline);
        let mut changes = Changes::default();
        match row {
            Some(_) if before.as_ref() == Some(&timeline) => {}
            Some(row) => {
                let (expected, state) = (row.version, timeline.encode());
                changes.saga = Some(Advance {
                    id: row.id,
                    expected,
                    status: Status::Completed,
                    state,
                    expiry: self.timeline_expiry(),
                });
            }
            None => changes.start = Some(Box::new(self.new_timeline(message, key.clone(), &timeline).await?)),
        }
        if changes.saga.is_none() && changes.start.is_none() && arrived.work.is_none() {
            return Ok(true);
        }
        let recorded = self.committer.recorder.record(arrived.handled(changes)).await?;
        // Another miss says that another process has the message.
        Ok(!matches!(recorded, Err(Miss::Saga(_) | Miss::NoSaga(_))))
    }

    fn timeline_expiry(&self) -> Option<Box<Expiry>> {
        self.ctx.settings.events_retention.map(|retention| Box::new(Expiry::deleted_in(retention)))
    }

    async fn new_timeline(&self, message: &Message, key: Key, timeline: &Timeline) -> Result<NewSaga, HandleError> {
        let later = || HandleError::Later { why: "the store gave no ids".to_owned(), is_counted: false };
        let ids = self.committer.store_calls.take_ids(1).await.ok_or_else(later)?;
        let (id, digest) = (SagaId(ids.start), Sha256::digest("timeline-1").into());
        Ok(NewSaga {
            input: b"null".to_vec(),
            status: Status::Completed,
            state: timeline.encode(),
            expiry: self.timeline_expiry(),
            ..NewSaga::new(id, &message.tenant, key, TIMELINES.clone(), digest)
        })
    }
}
