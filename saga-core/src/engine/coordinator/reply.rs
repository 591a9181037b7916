//! What other services say became of the steps that they host.

use std::sync::Arc;

use super::coordinator::Coordinator;
use crate::engine::commit::{CONFLICTS_MAX, ends, retry_on_conflict};
use crate::engine::decide::event_of_reply;
use crate::engine::instance::{AttemptDetails, SagaInstance, checksum};
use crate::engine::message::{HandleError, InboundMessage, check_value, step_or_item};
use crate::key::{Key, Tenant};
use crate::log;
use crate::machine::{self, AnsweredCommand, Event, Sent};
use crate::step::Rejection;
use crate::store::{Answer, Changes, DeadLetterReason, Message, Store};

/// What became of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReplyDecision {
    /// It has had its effect.
    Committed,
    /// Another decision about the saga was committed first.
    Conflict,
    /// The saga does not wait for it, for a reason in words.
    Unwanted(&'static str),
}

/// The step or the item that a reply is about, and which of its commands. A reply names the message that it answers, whose
/// id only its receiver knows.
pub(crate) fn told<S: Store>(saga: &SagaInstance<S>, message: &Message) -> Option<(usize, AnsweredCommand)> {
    let (name, item) = step_or_item(message.headers.step.as_deref()?).ok()?;
    let step = saga.state.index_of(saga.definition.shape.position(name)?, item)?;
    let asked = message.headers.correlation?;
    Some((step, machine::answered_command(&saga.state.steps[step], asked.0.as_u128())?))
}

impl<S: Store> Coordinator<S> {
    /// Finds out what a step was given that was asked of another service, since its record is to say so: the process that
    /// asked may have been another one, and the mapping there another one as well.
    pub(crate) async fn learn_input(
        &self,
        saga: &mut SagaInstance<S>,
        step: usize,
        sent: Sent,
    ) -> Result<(), HandleError> {
        if saga.knows_input_of(step) {
            return Ok(());
        }
        let made = saga.made_anew(step);
        if let Some(made) = made.as_ref().ok().filter(|made| checksum(made) == sent.given) {
            saga.set_input(step, Arc::from(&**made));
            return Ok(());
        }
        let stored = self.ctx.store.saga_with_steps(&saga.tenant, &saga.key).await?;
        let rows = stored.map(|stored| stored.work).unwrap_or_default();
        saga.remember_rows(&rows);
        if let (Ok(made), false) = (made, saga.knows_input_of(step)) {
            // Its row is gone: the saga moved, or the step was decided while its call was on its way.
            saga.set_input(step, made.into());
        }
        Ok(())
    }

    /// Brings a reply to the saga that waits for it. One that nobody waits for changes nothing.
    pub(crate) async fn handle_reply(self: &Arc<Self>, arrived: &InboundMessage) -> Result<(), HandleError> {
        let message = &arrived.message;
        let key = Key::from_message(message.headers.saga_key.as_deref().unwrap_or_default());
        let key = key.map_err(|problem| HandleError::Dead(DeadLetterReason::Unreadable, problem.to_string()))?;
        let _turn = self.saga_locks.lock(&message.tenant, &key).await;
        if let Some(cached) = self.committer.waiting_cache.take(&message.tenant, &key)
            && self.decide_reply(cached, arrived).await? == ReplyDecision::Committed
        {
            return Ok(());
        }
        let decided = retry_on_conflict(CONFLICTS_MAX, || async {
            let Some(saga) = self.read_saga(&message.tenant, &key).await? else {
                self.drop_reply(arrived, "there is no saga with its key").await?;
                return Ok(ends(true));
            };
            let is_done = match self.decide_reply(saga, arrived).await? {
                ReplyDecision::Committed => true,
                ReplyDecision::Conflict => false,
                ReplyDecision::Unwanted(why) => self.drop_reply(arrived, why).await.map(|()| true)?,
            };
            Ok::<_, HandleError>(ends(is_done))
        });
        let later = || HandleError::Later { why: "the saga moves all the time".to_owned(), is_counted: false };
        decided.await?.ok_or_else(later)
    }

    /// Decides what follows from a reply for the saga as it is here, and commits it.
    async fn decide_reply(
        self: &Arc<Self>,
        mut saga: SagaInstance<S>,
        arrived: &InboundMessage,
    ) -> Result<ReplyDecision, HandleError> {
        let message = &arrived.message;
        let Some((step, told)) = told(&saga, message) else {
            return Ok(ReplyDecision::Unwanted("no step waits for it"));
        };
        // As of every item, its record says what it was done with.
        if let Err(problem) = saga.pick_item(step) {
            return Err(HandleError::Later { why: problem, is_counted: true });
        }
        if !told.undo {
            self.learn_input(&mut saga, step, told.sent).await?;
        }
        let (event, findings) = self.event_of(&saga, step, told, message);
        let before = saga.state.clone();
        let hand_on = self.committer.reserve_next_work(&saga.definition).await?;
        // Only an operator's action is refused.
        let Ok(mut prepared) = self.decider.decide(&mut saga, event, &findings, hand_on) else {
            return Ok(ReplyDecision::Committed);
        };
        if saga.state == before {
            return Ok(ReplyDecision::Unwanted("it was known"));
        }
        prepared.changes.withdrawn.extend(told.sent.row());
        let is_committed = self.committer.commit_inbound(prepared, arrived).await?;
        Ok(if is_committed { ReplyDecision::Committed } else { ReplyDecision::Conflict })
    }

    /// The saga as the store has it.
    async fn read_saga(&self, tenant: &Tenant, key: &Key) -> Result<Option<SagaInstance<S>>, HandleError> {
        let Some(row) = self.ctx.store.saga(tenant, key).await? else { return Ok(None) };
        let Some(definition) = self.ctx.definitions.get(&row.definition) else {
            // Another replica knows it, or this one will.
            let why = format!("{} is not registered here", row.definition);
            return Err(HandleError::Later { why, is_counted: false });
        };
        let records = self.ctx.store.records_of_steps(&row.tenant, &row.key).await?;
        let unreadable = |why| HandleError::Later { why, is_counted: true };
        SagaInstance::of_row(&row, records, definition).map(Some).map_err(unreadable)
    }

    pub(crate) async fn drop_reply(&self, arrived: &InboundMessage, why: &str) -> Result<(), HandleError> {
        log::debug!(message_id = %arrived.message.id, reason = why, "reply ignored");
        if arrived.work.is_some() {
            // Who lost the row to another has nothing to do either.
            let _ = self.committer.recorder.record(arrived.handled(Changes::default())).await?;
        }
        Ok(())
    }

    fn event_of(
        &self,
        saga: &SagaInstance<S>,
        step: usize,
        told: AnsweredCommand,
        message: &Message,
    ) -> (Event, AttemptDetails) {
        let answer = message.headers.answer.unwrap_or(Answer::Unknown);
        let said: Rejection = serde_json::from_slice(&message.payload)
            .map_or_else(|_| Rejection::new(answer.as_str()), Rejection::limited);
        let host = message.headers.reply_to.as_deref().unwrap_or("its host");
        let mut findings = AttemptDetails { attempts: 1, ..AttemptDetails::default() };
        if answer == Answer::Done && !told.undo {
            let checked = check_value(saga.step(step).check_output, &message.payload)
                .and_then(|()| self.decider.check_length(message.payload.clone()));
            match checked {
                Ok(output) => findings.output = Some(output),
                Err(problem) => {
                    let reason = format!("`{host}` did it, but its output cannot be taken: {problem}");
                    return (Event::Blocked { step, reason, in_doubt: true }, findings);
                }
            }
        }
        (event_of_reply(step, &told, answer, &said, host), findings)
    }
}
