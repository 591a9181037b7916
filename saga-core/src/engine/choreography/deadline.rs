//! The deadline of a choreographed saga. The service of its pivot decides it.
//!
//! The event that sets the deadline stays in its row until it is due; nothing else is stored. The pivot's tombstone
//! and the event that reports it are one commit, so that no service undoes a saga whose pivot can still run.

use std::sync::Arc;
use std::time::Duration;

use super::choreography::Choreography;
use super::reactions::barring;
use crate::engine::commit::{CONFLICTS_MAX, changes, ends, retry_on_conflict};
use crate::engine::decide::at_pivot_deadline;
use crate::engine::message::{HandleError, InboundMessage};
use crate::machine::{AtDeadline, SagaState};
use crate::saga::{Definition, EventEncoder};
use crate::store::{Changes, DeadLetterReason, Headers, MessageId, NewMessage, Postponed, Store};

/// How often a pivot that is on its way is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

impl<S: Store> Choreography<S> {
    /// Waits until the deadline, and decides then.
    pub(crate) async fn handle_deadline(
        self: &Arc<Self>,
        pivot: &Arc<Definition<S>>,
        after: Duration,
        tell: &EventEncoder,
        arrived: &InboundMessage,
    ) -> Result<(), HandleError> {
        let message = &arrived.message;
        // What cannot be told is known before it is too late.
        let payload = tell
            .make(&message.payload, b"null")
            .map_err(|why| HandleError::Dead(DeadLetterReason::Undecodable, why))?;
        let left = after.saturating_sub(arrived.age);
        if !left.is_zero() {
            return self.look_later(arrived, left).await;
        }
        let asked = barring(pivot, message)?;
        let decided = retry_on_conflict(CONFLICTS_MAX, || async {
            let row = self.ctx.store.saga(&message.tenant, &asked.key).await?;
            let state = row.map(|row| SagaState::decode(&row.state, pivot.steps.len())).transpose();
            let state = state.map_err(|why| HandleError::Later { why, is_counted: true })?;
            Ok::<_, HandleError>(ends(match at_pivot_deadline(state.as_ref()) {
                AtDeadline::Wait => self.look_later(arrived, LOOK_AGAIN).await.map(|()| true)?,
                // A handler that lost the row to another has nothing to do either.
                AtDeadline::Decided => {
                    self.committer.recorder.record(arrived.handled(Changes::default())).await.map(|_| true)?
                }
                AtDeadline::Tombstone => {
                    let passed = self.passed(tell.event, payload.clone(), &asked.key.asked_for(), arrived);
                    self.host.tombstone_and_emit(&asked, arrived, Some(passed)).await?
                }
            }))
        });
        let later = || HandleError::Later { why: "its pivot moves all the time".to_owned(), is_counted: false };
        decided.await?.ok_or_else(later)
    }

    /// Leaves a tombstone for a step that has not begun, at once, and publishes no event.
    pub(crate) async fn handle_bar(
        self: &Arc<Self>,
        definition: &Arc<Definition<S>>,
        arrived: &InboundMessage,
    ) -> Result<(), HandleError> {
        self.host.check_age(arrived)?;
        let asked = barring(definition, &arrived.message)?;
        if self.ctx.store.saga(&arrived.message.tenant, &asked.key).await?.is_none()
            && self.host.tombstone_and_emit(&asked, arrived, None).await?
        {
            return Ok(());
        }
        // It has begun; who lost the row to another has nothing to do either.
        let _ = self.committer.recorder.record(arrived.handled(Changes::default())).await?;
        Ok(())
    }

    /// The row falls due again; that is no attempt.
    pub(crate) async fn look_later(&self, arrived: &InboundMessage, due_in: Duration) -> Result<(), HandleError> {
        let Some(work) = arrived.work else { return Ok(()) };
        let postponed = Postponed { work, due_in, attempts: 0, in_doubt: false, error: None };
        let _ = self.committer.recorder.record(changes::postpone(postponed)).await?;
        Ok(())
    }

    /// The event that says that the deadline has passed.
    pub(crate) fn passed(
        &self,
        name: &str,
        payload: Vec<u8>,
        key: &crate::key::Key,
        arrived: &InboundMessage,
    ) -> NewMessage {
        let (tenant, id) = (&arrived.message.tenant, MessageId(self.ctx.random_uuid()));
        let traceparent = arrived.message.headers.traceparent.clone();
        NewMessage {
            headers: Headers { saga_key: Some(key.to_string()), traceparent, ..Headers::default() },
            ..NewMessage::event(id, tenant, (name, &id.to_string()), name, payload)
        }
    }
}
