//! Steps that are hosted here for other services: each, or each item of a list, is a saga of one step, under the key of the
//! saga that asks for it and the step's name. So it is claimed, retried, recorded and undone like any other.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::commit::{CONFLICTS_MAX, Committer, changes, ends, retry_on_conflict};
use crate::engine::context::EngineContext;
use crate::engine::decide::{hosted_state, state_of_early_undo};
use crate::engine::instance::{AttemptDetails, NextSlot, NextWork, SagaInstance, WorkItem, in_flight};
use crate::engine::message::{
    HandleError, HostRequest, InboundMessage, Messages, UndoContent, Validator, check_value, request_hash, step_or_item,
};
use crate::engine::start::Starter;
use crate::key::{Key, StepId};
use crate::machine::{self, Caller, Event, SagaState, answer_of};
use crate::saga::Definition;
use crate::store::{
    Answer, DeadLetterReason, Lease, Message, Miss, NewMessage, NewSaga, NewWork, RetryClass, SagaId, SagaRow, Store,
    WorkId, WorkKind, WorkRef,
};

/// By how much a message must be younger than what is kept: the clocks of two databases may differ.
const MARGIN_MAX: Duration = Duration::from_hours(24);

/// What an undo brings: what the step took, and what it returned if that is known to have happened.
pub(crate) fn undo_content<S: Store>(
    asked: &HostRequest<S>,
    message: &Message,
) -> Result<(Vec<u8>, Option<Vec<u8>>), String> {
    let content: UndoContent<'_> = serde_json::from_slice(&message.payload).map_err(|error| error.to_string())?;
    let step = &asked.definition.steps[0];
    let input = content.input.get().as_bytes();
    check_value(step.check_input, input)?;
    let done = message.headers.answer == Some(Answer::Done);
    // An output that is `null` cannot be told from none there; the header says whether there is one.
    let output = done.then(|| content.output.map_or_else(|| b"null".to_vec(), |output| output.get().into()));
    if let Some(output) = &output {
        check_value(step.check_output, output)?;
    }
    Ok((input.to_vec(), output))
}

/// Does steps for the sagas of other services.
pub(crate) struct Host<S: Store> {
    pub(crate) ctx: Arc<EngineContext<S>>,
    pub(crate) committer: Arc<Committer<S>>,
    pub(crate) starter: Arc<Starter<S>>,
    pub(crate) messages: Arc<Messages>,
    pub(crate) validator: Arc<Validator<S>>,
}

impl<S: Store> Host<S> {
    pub(crate) fn new(
        committer: Arc<Committer<S>>,
        starter: Arc<Starter<S>>,
        messages: Arc<Messages>,
        validator: Arc<Validator<S>>,
    ) -> Self {
        Self { ctx: Arc::clone(&committer.ctx), committer, starter, messages, validator }
    }
}

impl<S: Store> Host<S> {
    /// Begins a hosted step, or answers again from its record.
    pub(crate) async fn handle_command(self: &Arc<Self>, arrived: &InboundMessage) -> Result<(), HandleError> {
        self.begin_hosted(&self.asked(arrived)?, arrived).await
    }

    /// The same, once it is known what is asked for.
    pub(crate) async fn begin_hosted(
        self: &Arc<Self>,
        asked: &HostRequest<S>,
        arrived: &InboundMessage,
    ) -> Result<(), HandleError> {
        if self.starter.pending_starts.contains(&arrived.message.tenant, &asked.key) {
            // The transaction that began it with the first copy of this message has not ended.
            return Err(HandleError::Later { why: "the step runs at this moment".to_owned(), is_counted: false });
        }
        let (saga, first) = self.first_of(asked, &arrived.message).await?;
        let changes = arrived.handled(changes::start(saga));
        match self.committer.recorder.record(changes).await {
            Ok(Ok(())) if first.slot.is_some() => self.committer.scheduler.enqueue(first),
            Ok(Ok(())) => self.committer.scheduler.announce_unclaimed(Duration::ZERO),
            Ok(Err(Miss::Saga(row))) => return self.answer_again(asked, &row, arrived).await,
            // Another process has the message.
            Ok(Err(_)) => {}
            Err(error) => {
                if error.class == RetryClass::Unknown {
                    // What was committed after all is leased to this process, which does not know it.
                    self.committer.scheduler.release(&[first.work]).await;
                }
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Begins a hosted step in the transaction that runs it. Answers whether that is how it went.
    pub(crate) async fn start_inline(self: &Arc<Self>, asked: HostRequest<S>, arrived: &InboundMessage) -> bool {
        if !self.starter.limits.is_proven(asked.definition.steps[0].name) {
            return false;
        }
        let Ok((saga, first)) = self.first_of(&asked, &arrived.message).await else { return false };
        self.starter.starts_with_step(&first)
            && matches!(
                self.starter.start_with_step(first, &Arc::new(saga), self.ctx.lifecycle.enter()).await,
                Ok(Ok(()))
            )
    }

    /// The hosted step that a command asks for, and its first command: with a lease, if a slot is free.
    async fn first_of(&self, asked: &HostRequest<S>, message: &Message) -> Result<(NewSaga, WorkItem<S>), HandleError> {
        let step = &asked.definition.steps[0];
        let input = asked.made.as_ref().map_or(&message.payload, |made| &made.input);
        check_value(step.check_input, input)
            .map_err(|problem| HandleError::Dead(DeadLetterReason::Undecodable, format!("its content: {problem}")))?;
        let caller = Caller {
            reply_to: asked.reply_to.clone(),
            command: Some(asked.by),
            undo: None,
            traceparent: message.headers.traceparent.clone(),
            earlier: asked.made.as_ref().map(|made| made.earlier.clone()).unwrap_or_default(),
        };
        let state = hosted_state(&asked.definition, caller);
        let mut saga = self.fresh(asked, message, input, state).await?;
        let work = WorkRef::inserted(WorkId(saga.id.0 + 1));
        let owner = self.committer.scheduler.membership.member();
        let effect = asked.definition.shape.steps[0].effect;
        let key = self.committer.scheduler.bulkheads.concurrency_key(&asked.definition.id, 0, false, effect);
        let slot = owner.and_then(|_| self.committer.scheduler.slot_to_start_now(key));
        let lease = owner.filter(|_| slot.is_some()).map(|owner| Lease { owner, ttl: self.ctx.settings.lease_ttl });
        let lease_until = self.ctx.env.now().saturating_add(self.ctx.settings.lease_ttl);
        let (kind, name) = (WorkKind::Do, StepId::doing(step.name));
        let first = NewWork::new(work.id, saga.id, (&saga.tenant, &saga.key), &saga.definition, kind, name);
        saga.commands.push(NewWork { lease, ..first });
        let first = WorkItem::new(
            in_flight(&asked.definition, &saga).map_err(unreadable)?,
            work.id,
            machine::Command::Do { step: 0 },
            owner.unwrap_or_else(|| self.committer.scheduler.membership.member_id()),
            lease_until,
            slot,
        );
        Ok((saga, first))
    }

    /// Undoes a hosted step that was done, and bars one that was not.
    pub(crate) async fn handle_undo(self: &Arc<Self>, arrived: &InboundMessage) -> Result<(), HandleError> {
        self.undo_hosted(&self.asked(arrived)?, arrived).await
    }

    /// The same, once it is known what is asked for.
    pub(crate) async fn undo_hosted(
        self: &Arc<Self>,
        asked: &HostRequest<S>,
        arrived: &InboundMessage,
    ) -> Result<(), HandleError> {
        let undone = retry_on_conflict(CONFLICTS_MAX, || async {
            let row = self.ctx.store.saga(&arrived.message.tenant, &asked.key).await?;
            Ok::<_, HandleError>(ends(match row {
                Some(row) => self.undo_known(asked, &row, arrived).await?,
                None => self.undo_unseen(asked, arrived, None).await?,
            }))
        });
        let later = || HandleError::Later { why: "the step moves all the time".to_owned(), is_counted: false };
        undone.await?.ok_or_else(later)
    }

    /// A command whose step key is known: it is answered from the record, as soon as there is an answer.
    pub(crate) async fn answer_again(
        &self,
        asked: &HostRequest<S>,
        row: &SagaRow,
        arrived: &InboundMessage,
    ) -> Result<(), HandleError> {
        let message = &arrived.message;
        let hash = asked.made.as_ref().map_or_else(|| request_hash(&message.payload), |made| made.hash.clone());
        // What an event barred before it began was never told what it would have been.
        let is_same = row.input_hash.is_empty() || row.input_hash == hash;
        if row.definition != asked.definition.id || !is_same {
            let detail = format!("the step key of `{}` was used with another content", asked.key);
            return Err(HandleError::Dead(DeadLetterReason::PayloadMismatch, detail));
        }
        let saga = self.known(asked, row).await?;
        let messages: Vec<_> = self.messages.reply_again(&saga, asked.by, false).into_iter().collect();
        if messages.is_empty() && arrived.work.is_none() {
            return Ok(());
        }
        // Who lost the row to another need not answer: the other does.
        let _ = self.committer.recorder.record(arrived.handled(changes::send(messages))).await?;
        self.committer.outbox.wake_relay();
        Ok(())
    }

    async fn undo_known(
        self: &Arc<Self>,
        asked: &HostRequest<S>,
        row: &SagaRow,
        arrived: &InboundMessage,
    ) -> Result<bool, HandleError> {
        let mut saga = self.known(asked, row).await?;
        let message = &arrived.message;
        let was_taken_back = saga.state.caller.as_ref().is_some_and(|caller| caller.undo.is_some());
        let caller = saga.state.caller.get_or_insert_with(|| {
            let traceparent = message.headers.traceparent.clone();
            let reply_to = asked.reply_to.clone();
            Box::new(Caller { reply_to, command: None, undo: None, traceparent, earlier: Vec::new() })
        });
        caller.undo = Some(asked.by);
        if was_taken_back && answer_of(&saga.state).is_some() {
            let messages = self.messages.reply_again(&saga, asked.by, true).into_iter().collect();
            let applied = self.committer.recorder.record(arrived.handled(changes::send(messages))).await?;
            self.committer.outbox.wake_relay();
            return Ok(!matches!(applied, Err(Miss::Saga(_))));
        }
        let hand_on = self.committer.reserve_next_work(&saga.definition).await?;
        let prepared =
            self.starter.decider.decide(&mut saga, Event::UndoRequested, &AttemptDetails::default(), hand_on);
        // Only an operator's action is refused.
        let Ok(mut prepared) = prepared else { return Ok(true) };
        if prepared.changes.messages.is_empty() {
            // Nothing of it took effect before: there is nothing to undo.
            prepared.changes.messages.extend(self.messages.reply_again(&saga, asked.by, true));
        }
        self.committer.commit_inbound(prepared, arrived).await
    }

    /// An undo of a step that is not known here: one that is known to be done is undone from the message, and another
    /// one is barred, so that a late command finds that.
    async fn undo_unseen(
        self: &Arc<Self>,
        asked: &HostRequest<S>,
        arrived: &InboundMessage,
        told: Option<NewMessage>,
    ) -> Result<bool, HandleError> {
        let message = &arrived.message;
        let (input, output) = match &asked.made {
            Some(made) => (made.input.clone(), None),
            None => undo_content(asked, message).map_err(|problem| {
                HandleError::Dead(DeadLetterReason::Undecodable, format!("its content: {problem}"))
            })?,
        };
        let caller = Caller {
            reply_to: asked.reply_to.clone(),
            command: None,
            undo: Some(asked.by),
            traceparent: message.headers.traceparent.clone(),
            earlier: Vec::new(),
        };
        let (state, event) = state_of_early_undo(&asked.definition, output.is_some(), caller);
        let mut new = self.fresh(asked, message, &input, state).await?;
        let mut saga = in_flight(&asked.definition, &new).map_err(unreadable)?.unstored();
        let hand_on = NextWork { ids: new.id.0 + 1, slot: NextSlot::Nowhere };
        let findings = AttemptDetails { output, ..AttemptDetails::default() };
        // It has been taken back already: what turns out to be done is undone, and what did not begin never does.
        let Ok(mut prepared) = self.starter.decider.decide(&mut saga, event, &findings, hand_on) else {
            return Ok(true);
        };
        // It is one start.
        if let Some(advance) = prepared.changes.saga.take() {
            (new.status, new.state) = (advance.status, saga.state.encode());
        }
        prepared.changes.start = Some(Box::new(new));
        if let Some(told) = told {
            prepared.changes.messages.push(told);
        }
        self.committer.commit_inbound(prepared, arrived).await
    }

    /// Bars a step that has not begun, and tells of it in the same commit; answers whether that is how it went.
    pub(crate) async fn tombstone_and_emit(
        self: &Arc<Self>,
        asked: &HostRequest<S>,
        arrived: &InboundMessage,
        told: Option<NewMessage>,
    ) -> Result<bool, HandleError> {
        self.undo_unseen(asked, arrived, told).await
    }

    pub(crate) fn asked(&self, arrived: &InboundMessage) -> Result<HostRequest<S>, HandleError> {
        // What was stored was checked, but by the process that stored it: this one may host less.
        self.validator.check(&arrived.message, &arrived.source)?;
        let headers = &arrived.message.headers;
        let step = headers.step.as_deref().unwrap_or_default();
        let unknown =
            || HandleError::Dead(DeadLetterReason::UnknownStep, format!("the step `{step}` is not hosted here"));
        let named = step_or_item(step).ok();
        let definition =
            named.and_then(|(name, _)| self.validator.hosted(&arrived.source, name)).ok_or_else(unknown)?;
        let key = Key::from_message(headers.saga_key.as_deref().unwrap_or_default());
        let key = key.map_err(|problem| HandleError::Dead(DeadLetterReason::Unreadable, problem.to_string()))?;
        self.check_age(arrived)?;
        Ok(HostRequest {
            definition: Arc::clone(definition),
            key: key.hosted(step),
            reply_to: headers.reply_to.clone().unwrap_or_default(),
            by: arrived.message.id.0.as_u128(),
            made: None,
        })
    }

    /// Whether what a message asks for would still be known, had it been done before.
    pub(crate) fn check_age(&self, arrived: &InboundMessage) -> Result<(), HandleError> {
        let horizon = self.ctx.settings.retention.saturating_sub(MARGIN_MAX.min(self.ctx.settings.retention / 4));
        if arrived.age > horizon {
            let (age, limit) = (arrived.age.as_secs(), horizon.as_secs());
            let detail = format!("it was committed {age} s ago, and records are kept for {limit} s at least");
            return Err(HandleError::Dead(DeadLetterReason::TooOld, detail));
        }
        Ok(())
    }

    /// A hosted step that is not written yet; the id behind its own is for a command.
    pub(crate) async fn fresh(
        &self,
        asked: &HostRequest<S>,
        message: &Message,
        input: &[u8],
        state: SagaState,
    ) -> Result<NewSaga, HandleError> {
        let later = || HandleError::Later { why: "the store gave no ids".to_owned(), is_counted: false };
        let ids = self.committer.store_calls.take_ids(2).await.ok_or_else(later)?;
        let Definition { id, digest, .. } = &*asked.definition;
        Ok(NewSaga {
            input: input.to_vec(),
            input_hash: asked.made.as_ref().map_or_else(|| request_hash(input), |made| made.hash.clone()),
            state: state.encode(),
            ..NewSaga::new(SagaId(ids.start), &message.tenant, asked.key.clone(), id.clone(), *digest)
        })
    }

    pub(crate) async fn known(&self, asked: &HostRequest<S>, row: &SagaRow) -> Result<SagaInstance<S>, HandleError> {
        let records = self.ctx.store.records_of(&row.tenant, &row.key).await?;
        SagaInstance::of_row(row, records, &asked.definition).map_err(unreadable)
    }
}

fn unreadable(why: String) -> HandleError {
    HandleError::Later { why, is_counted: true }
}
