//! Handles the replies of hosts: each decides a remote step of a saga.

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
use crate::store::{Answer, Changes, Claim, DeadLetterReason, Message, Store, WorkKind, WorkRef};

/// The result of applying a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReplyDecision {
    /// Its decision was committed.
    Committed,
    /// Another decision about the saga was committed first.
    Conflict,
    /// The saga does not wait for it, for this reason.
    Unwanted(&'static str),
}

/// How the decision about a reply is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Recorded {
    /// By the transaction of the step behind it, if that is known to be quick.
    WithStep,
    /// By a commit of its own.
    Alone,
}

/// The claim of the row that waits for a reply. It is granted as long as the command was neither sent again nor answered.
fn claim_of<S: Store>(saga: &SagaInstance<S>, step: usize, sent: Sent) -> Option<Claim> {
    let id = saga.definition.step_id(&saga.state, machine::Command::Do { step });
    let row = WorkRef::inserted(sent.row()?);
    Some(Claim::new(row, saga.id, &saga.tenant, &saga.key, id, WorkKind::Do))
}

/// The step or item that a reply is about, and the command that it answers. A reply carries the id of the command message.
pub(crate) fn answered_command<S: Store>(
    saga: &SagaInstance<S>,
    message: &Message,
) -> Option<(usize, AnsweredCommand)> {
    let (name, item) = step_or_item(message.headers.step.as_deref()?).ok()?;
    let step = saga.state.index_of(saga.definition.shape.position(name)?, item)?;
    let command = message.headers.correlation?;
    Some((step, machine::answered_command(&saga.state.steps[step], command.0.as_u128())?))
}

impl<S: Store> Coordinator<S> {
    /// Makes sure that the input which was sent to the host is known, since the step record contains it. Another process, with
    /// another version of the mapping, may have sent it; then it is read from the work row.
    pub(crate) async fn ensure_input(
        &self,
        saga: &mut SagaInstance<S>,
        step: usize,
        sent: Sent,
    ) -> Result<(), HandleError> {
        let Some(mapping) = saga.step(step).input.as_ref().filter(|_| saga.inputs.of(step).is_none()) else {
            return Ok(());
        };
        let mapped = mapping.apply(&saga.input, &saga.outputs);
        if let Some(mapped) = mapped.as_ref().ok().filter(|mapped| checksum(mapped) == sent.given) {
            saga.inputs.set(step, Arc::from(&**mapped));
            return Ok(());
        }
        let stored = self.ctx.store.saga_with_steps(&saga.tenant, &saga.key).await?;
        let rows = stored.map(|stored| stored.work).unwrap_or_default();
        saga.remember_rows(&rows);
        if let (Ok(mapped), None) = (mapped, saga.inputs.of(step)) {
            // The row is gone: the saga moved, or the step was decided while the reply was on its way.
            saga.inputs.set(step, mapped.into());
        }
        Ok(())
    }

    /// Applies a reply to the saga that waits for it, from the cache or from the store. A reply that no saga waits for changes
    /// nothing.
    pub(crate) async fn handle_reply(self: &Arc<Self>, inbound: &InboundMessage) -> Result<(), HandleError> {
        let message = &inbound.message;
        let key = Key::from_message(message.headers.saga_key.as_deref().unwrap_or_default());
        let key = key.map_err(|problem| HandleError::Dead(DeadLetterReason::Unreadable, problem.to_string()))?;
        let _guard = self.saga_locks.lock(&message.tenant, &key).await;
        if let Some(cached) = self.committer.waiting_cache.take(&message.tenant, &key)
            && self.decide_reply(cached, inbound, Recorded::WithStep).await? == ReplyDecision::Committed
        {
            return Ok(());
        }
        let decided = retry_on_conflict(CONFLICTS_MAX, || async {
            let Some(saga) = self.read_saga(&message.tenant, &key).await? else {
                self.drop_reply(inbound, "there is no saga with its key").await?;
                return Ok(ends(true));
            };
            let is_done = match self.decide_reply(saga, inbound, Recorded::Alone).await? {
                ReplyDecision::Committed => true,
                ReplyDecision::Conflict => false,
                ReplyDecision::Unwanted(why) => self.drop_reply(inbound, why).await.map(|()| true)?,
            };
            Ok::<_, HandleError>(ends(is_done))
        });
        let later = || HandleError::Later { why: "the saga moves all the time".to_owned(), is_counted: false };
        decided.await?.ok_or_else(later)
    }

    /// Decides what follows from a reply for this state of the saga, and commits it.
    async fn decide_reply(
        self: &Arc<Self>,
        mut saga: SagaInstance<S>,
        inbound: &InboundMessage,
        recorded: Recorded,
    ) -> Result<ReplyDecision, HandleError> {
        let message = &inbound.message;
        let Some((step, answered)) = answered_command(&saga, message) else {
            return Ok(ReplyDecision::Unwanted("no step waits for it"));
        };
        // The record of an item contains its input.
        if let Err(problem) = saga.pick_item(step) {
            return Err(HandleError::Later { why: problem, is_counted: true });
        }
        if !answered.undo {
            self.ensure_input(&mut saga, step, answered.sent).await?;
        }
        let (event, findings) = self.event_of(&saga, step, answered, message);
        let is_inline = recorded == Recorded::WithStep && inbound.work.is_none() && matches!(event, Event::Done { .. });
        let claim = is_inline.then(|| claim_of(&saga, step, answered.sent)).flatten();
        let before = saga.state.clone();
        let next_work = self.committer.reserve_next_work(&saga.definition).await?;
        // The machine refuses only operators' actions.
        let Ok(mut prepared) = self.decider.decide(&mut saga, event, &findings, next_work) else {
            return Ok(ReplyDecision::Committed);
        };
        if saga.state == before {
            return Ok(ReplyDecision::Unwanted("it was known"));
        }
        prepared.changes.withdrawn.extend(answered.sent.row());
        if let Some(claim) = claim.filter(|_| self.inline_steps.takes_decision(&prepared)) {
            let committed = self.inline_steps.commit_with_step(prepared, claim).await;
            return Ok(committed.map_or(ReplyDecision::Conflict, |()| ReplyDecision::Committed));
        }
        let is_committed = self.committer.commit_inbound(prepared, inbound).await?;
        Ok(if is_committed { ReplyDecision::Committed } else { ReplyDecision::Conflict })
    }

    /// The saga as the store has it.
    async fn read_saga(&self, tenant: &Tenant, key: &Key) -> Result<Option<SagaInstance<S>>, HandleError> {
        let row = self.ctx.store.saga(tenant, key).await?;
        let Some(row) = row.filter(|row| !row.is_tombstone()) else { return Ok(None) };
        let Some(definition) = self.ctx.definitions.get(&row.definition) else {
            // Another process has the definition, or this one will after a deployment.
            let why = format!("{} is not registered here", row.definition);
            return Err(HandleError::Later { why, is_counted: false });
        };
        let records = self.ctx.store.records_of_steps(&row.tenant, &row.key).await?;
        let unreadable = |why| HandleError::Later { why, is_counted: true };
        SagaInstance::of_row(&row, records, definition).map(Some).map_err(unreadable)
    }

    pub(crate) async fn drop_reply(&self, inbound: &InboundMessage, why: &str) -> Result<(), HandleError> {
        log::debug!(message_id = %inbound.message.id, reason = why, "reply ignored");
        if inbound.work.is_some() {
            // A miss says that another process has the message.
            let _ = self.committer.recorder.record(inbound.handled(Changes::default())).await?;
        }
        Ok(())
    }

    fn event_of(
        &self,
        saga: &SagaInstance<S>,
        step: usize,
        answered: AnsweredCommand,
        message: &Message,
    ) -> (Event, AttemptDetails) {
        let answer = message.headers.answer.unwrap_or(Answer::Unknown);
        let rejection: Rejection = serde_json::from_slice(&message.payload)
            .map_or_else(|_| Rejection::new(answer.as_str()), Rejection::limited);
        let host = message.headers.reply_to.as_deref().unwrap_or("its host");
        let mut findings = AttemptDetails { attempts: 1, ..AttemptDetails::default() };
        if answer == Answer::Done && !answered.undo {
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
        (event_of_reply(step, &answered, answer, &rejection, host), findings)
    }
}
