//! The deadline of a choreographed saga. The service of its pivot decides it.
//!
//! The event that sets the deadline stays in its row until it is due; nothing else is stored. The pivot's tombstone
//! and the event that reports it are one commit, so that no service undoes a saga whose pivot can still run.

use std::sync::Arc;
use std::time::Duration;

use super::choreography::Choreography;
use super::reactions::tombstone_request;
use crate::engine::commit::{CONFLICTS_MAX, changes, ends, retry_on_conflict};
use crate::engine::decide::at_pivot_deadline;
use crate::engine::message::{HandleError, HostRequest, InboundMessage};
use crate::machine::{AtDeadline, SagaState};
use crate::saga::{Definition, EventEncoder};
use crate::store::{Changes, DeadLetterReason, Headers, MessageId, NewMessage, Postponed, Store};

/// How often a pivot in flight is checked again.
const CHECK_AGAIN_IN: Duration = Duration::from_millis(500);

impl<S: Store> Choreography<S> {
    /// Waits until the deadline, and then leaves a tombstone for the pivot unless it has begun.
    pub(crate) async fn handle_deadline(
        self: &Arc<Self>,
        pivot: &Arc<Definition<S>>,
        after: Duration,
        encoder: &EventEncoder,
        inbound: &InboundMessage,
    ) -> Result<(), HandleError> {
        let message = &inbound.message;
        // The event is made first: if that fails, it fails before the deadline.
        let payload = encoder
            .make(&message.payload, b"null")
            .map_err(|why| HandleError::Dead(DeadLetterReason::Undecodable, why))?;
        if self.ctx.settings.events_retention.is_some() {
            // Whether the pivot was done may not be known any more.
            self.host.check_age(inbound.age.saturating_sub(after))?;
        }
        let left = after.saturating_sub(inbound.age);
        if !left.is_zero() {
            return self.postpone(inbound, left).await;
        }
        let request = tombstone_request(pivot, message)?;
        let decided = retry_on_conflict(CONFLICTS_MAX, || async {
            let row = self.ctx.store.saga(&message.tenant, &request.key).await?;
            let state = row.map(|row| SagaState::decode(&row.state, pivot.steps.len())).transpose();
            let state = state.map_err(|why| HandleError::Later { why, is_counted: true })?;
            Ok::<_, HandleError>(ends(match at_pivot_deadline(state.as_ref()) {
                AtDeadline::Wait => self.postpone(inbound, CHECK_AGAIN_IN).await.map(|()| true)?,
                // A miss says that another process has the message.
                AtDeadline::Decided => {
                    self.committer.recorder.record(inbound.handled(Changes::default())).await.map(|_| true)?
                }
                AtDeadline::Tombstone => {
                    let event = self.deadline_event(encoder.event, payload.clone(), &request.key.asked_for(), inbound);
                    self.host.tombstone_and_emit(&request, inbound, Some(event)).await?
                }
            }))
        });
        let later = || HandleError::Later { why: "its pivot moves all the time".to_owned(), is_counted: false };
        decided.await?.ok_or_else(later)
    }

    /// Leaves a tombstone for a step that has not begun, at once, and publishes no event.
    pub(crate) async fn handle_tombstone(
        self: &Arc<Self>,
        definition: &Arc<Definition<S>>,
        inbound: &InboundMessage,
    ) -> Result<(), HandleError> {
        self.host.check_age(inbound.age)?;
        self.leave_tombstone(&tombstone_request(definition, &inbound.message)?, inbound).await
    }

    /// Leaves a tombstone for a step, unless it has begun.
    pub(crate) async fn leave_tombstone(
        self: &Arc<Self>,
        request: &HostRequest<S>,
        inbound: &InboundMessage,
    ) -> Result<(), HandleError> {
        if self.ctx.store.saga(&inbound.message.tenant, &request.key).await?.is_none()
            && self.host.tombstone_and_emit(request, inbound, None).await?
        {
            return Ok(());
        }
        // The step has begun. A miss says that another process has the message.
        let _ = self.committer.recorder.record(inbound.handled(Changes::default())).await?;
        Ok(())
    }

    /// Leaves the message in its row, to be handled again after this time. No attempt is counted.
    pub(crate) async fn postpone(&self, inbound: &InboundMessage, due_in: Duration) -> Result<(), HandleError> {
        let Some(work) = inbound.work else { return Ok(()) };
        let postponed = Postponed { work, due_in, attempts: 0, in_doubt: false, error: None };
        let _ = self.committer.recorder.record(changes::postpone(postponed)).await?;
        Ok(())
    }

    /// The event that reports the passed deadline.
    pub(crate) fn deadline_event(
        &self,
        name: &str,
        payload: Vec<u8>,
        key: &crate::key::Key,
        inbound: &InboundMessage,
    ) -> NewMessage {
        let (tenant, id) = (&inbound.message.tenant, MessageId(self.ctx.random_uuid()));
        let traceparent = inbound.message.headers.traceparent.clone();
        NewMessage {
            headers: Headers { saga_key: Some(key.to_string()), traceparent, ..Headers::default() },
            ..NewMessage::event(id, tenant, (name, &id.to_string()), name, payload)
        }
    }
}
