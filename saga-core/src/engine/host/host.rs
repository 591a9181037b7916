//! Handles the commands and undos of coordinators. A hosted step, or an item of a list, is a saga of one step under the key of the
//! coordinator's saga and the step's name. So it is claimed, retried, recorded and undone like any other saga.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::commit::{CONFLICTS_MAX, Committer, changes, ends, retry_on_conflict};
use crate::engine::context::EngineContext;
use crate::engine::decide::{hosted_state, state_of_early_undo};
use crate::engine::instance::{AttemptDetails, NextSlot, NextWork, SagaInstance, WorkItem, in_flight};
use crate::engine::message::{
    HandleError, HostRequest, InboundMessage, Messages, UndoContent, Validator, carried_locks, check_value,
    missing_lock, request_hash, step_or_item,
};
use crate::engine::start::Starter;
use crate::key::{Key, StepId};
use crate::machine::{self, Caller, Event, SagaState, answer_of};
use crate::saga::Definition;
use crate::store::{
    Answer, DeadLetterReason, Lease, Message, Miss, NewMessage, NewSaga, NewWork, RetryClass, SagaId, SagaRow, Store,
    WorkId, WorkKind, WorkRef,
};

/// The content of an undo: the input of the step, and its output if the coordinator knows that it was done.
pub(crate) fn undo_content<S: Store>(
    request: &HostRequest<S>,
    message: &Message,
) -> Result<(Vec<u8>, Option<Vec<u8>>), String> {
    let content: UndoContent<'_> = serde_json::from_slice(&message.payload).map_err(|error| error.to_string())?;
    let step = &request.definition.steps[0];
    let input = content.input.get().as_bytes();
    check_value(step.check_input, input)?;
    let done = message.headers.answer == Some(Answer::Done);
    // In the content, an output of `null` looks like none. The header says whether there is one.
    let output = done.then(|| content.output.map_or_else(|| b"null".to_vec(), |output| output.get().into()));
    if let Some(output) = &output {
        check_value(step.check_output, output)?;
    }
    Ok((input.to_vec(), output))
}

/// Starts and undoes hosted steps.
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
    /// Handles a command: starts the hosted step, or replies again from its record.
    pub(crate) async fn handle_command(self: &Arc<Self>, inbound: &InboundMessage) -> Result<(), HandleError> {
        self.begin_hosted(&self.request_of(inbound)?, inbound).await
    }

    /// Starts the hosted step of a request, or replies again from its record.
    pub(crate) async fn begin_hosted(
        self: &Arc<Self>,
        request: &HostRequest<S>,
        inbound: &InboundMessage,
    ) -> Result<(), HandleError> {
        if self.starter.pending_starts.contains(&inbound.message.tenant, &request.key) {
            // A transaction runs the step for another copy of this message.
            return Err(HandleError::Later { why: "the step runs at this moment".to_owned(), is_counted: false });
        }
        let (saga, first) = self.new_request(request, &inbound.message).await?;
        let changes = inbound.handled(changes::start(saga));
        match self.committer.recorder.record(changes).await {
            Ok(Ok(())) if first.slot.is_some() => self.committer.scheduler.enqueue(first),
            Ok(Ok(())) => self.committer.scheduler.announce_unclaimed(Duration::ZERO),
            Ok(Err(Miss::Saga(row))) => return self.answer_again(request, &row, inbound).await,
            // Another process has the message.
            Ok(Err(_)) => {}
            Err(error) => {
                if error.class == RetryClass::Unknown {
                    // If it was committed after all, this process holds a lease that it does not use.
                    self.committer.scheduler.release(&[first.work]).await;
                }
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Starts a hosted step in the transaction that runs it; false if that was not possible.
    pub(crate) async fn start_inline(self: &Arc<Self>, request: HostRequest<S>, inbound: &InboundMessage) -> bool {
        if !self.starter.inline_steps.is_proven(request.definition.steps[0].name) {
            return false;
        }
        let Ok((saga, first)) = self.new_request(&request, &inbound.message).await else { return false };
        self.starter.starts_with_step(&first)
            && matches!(
                self.starter.start_with_step(first, &Arc::new(saga), self.ctx.lifecycle.enter()).await,
                Ok(Ok(()))
            )
    }

    /// The hosted step that a command asks for, and its first command: with a lease, if a slot is free.
    async fn new_request(
        &self,
        request: &HostRequest<S>,
        message: &Message,
    ) -> Result<(NewSaga, WorkItem<S>), HandleError> {
        let step = &request.definition.steps[0];
        let input = request.mapped.as_ref().map_or(&message.payload, |mapped| &mapped.input);
        let undecodable = |problem| HandleError::Dead(DeadLetterReason::Undecodable, problem);
        check_value(step.check_input, input).map_err(|problem| undecodable(format!("its content: {problem}")))?;
        if let Some(problem) = missing_lock(&request.definition, message.headers.locks.as_deref(), &request.earlier) {
            return Err(undecodable(problem));
        }
        let caller = Caller {
            reply_to: request.reply_to.clone(),
            command: Some(request.by),
            undo: None,
            traceparent: message.headers.traceparent.clone(),
            earlier: request.earlier.clone(),
        };
        let state = hosted_state(&request.definition, caller);
        let mut saga = self.new_hosted(request, message, input, state).await?;
        let work = WorkRef::inserted(WorkId(saga.id.0 + 1));
        let owner = self.committer.scheduler.membership.member();
        let effect = request.definition.shape.steps[0].effect;
        let key = self.committer.scheduler.bulkheads.limits.concurrency_key(&request.definition.id, 0, false, effect);
        let slot = owner.and_then(|_| self.committer.scheduler.slot_to_start_now(key));
        let lease = owner.filter(|_| slot.is_some()).map(|owner| Lease { owner, ttl: self.ctx.settings.lease_ttl });
        let lease_until = self.ctx.env.now().saturating_add(self.ctx.settings.lease_ttl);
        let (kind, name) = (WorkKind::Do, StepId::doing(step.name));
        let first = NewWork::new(work.id, saga.id, (&saga.tenant, &saga.key), &saga.definition, kind, name);
        saga.commands.push(NewWork { lease, ..first });
        let first = WorkItem::new(
            in_flight(&request.definition, &saga).map_err(unreadable)?,
            work.id,
            machine::Command::Do { step: 0 },
            owner.unwrap_or_else(|| self.committer.scheduler.membership.member_id()),
            lease_until,
            slot,
        );
        Ok((saga, first))
    }

    /// Handles an undo: undoes a step that was done, and leaves a tombstone for one that was not.
    pub(crate) async fn handle_undo(self: &Arc<Self>, inbound: &InboundMessage) -> Result<(), HandleError> {
        self.undo_hosted(&self.request_of(inbound)?, inbound).await
    }

    /// Undoes the hosted step of a request.
    pub(crate) async fn undo_hosted(
        self: &Arc<Self>,
        request: &HostRequest<S>,
        inbound: &InboundMessage,
    ) -> Result<(), HandleError> {
        let undone = retry_on_conflict(CONFLICTS_MAX, || async {
            let row = self.ctx.store.saga(&inbound.message.tenant, &request.key).await?;
            Ok::<_, HandleError>(ends(match row {
                Some(row) => self.undo_known(request, &row, inbound).await?,
                None => self.undo_unknown(request, inbound, None).await?,
            }))
        });
        let later = || HandleError::Later { why: "the step moves all the time".to_owned(), is_counted: false };
        undone.await?.ok_or_else(later)
    }

    /// Replies to a command whose step key exists already, if the step has an outcome.
    pub(crate) async fn answer_again(
        &self,
        request: &HostRequest<S>,
        row: &SagaRow,
        inbound: &InboundMessage,
    ) -> Result<(), HandleError> {
        let message = &inbound.message;
        let hash = request.mapped.as_ref().map_or_else(|| request_hash(&message.payload), |mapped| mapped.hash.clone());
        // A tombstone of an event has no input hash.
        let is_same = row.input_hash.is_empty() || row.input_hash == hash;
        if row.definition != request.definition.id || !is_same {
            let detail = format!("the step key of `{}` was used with another content", request.key);
            return Err(HandleError::Dead(DeadLetterReason::PayloadMismatch, detail));
        }
        let saga = self.load_hosted(request, row).await?;
        let messages: Vec<_> = self.messages.reply_again(&saga, request.by, false).into_iter().collect();
        if messages.is_empty() && inbound.work.is_none() {
            return Ok(());
        }
        // A miss says that another process has the message, and replies.
        let _ = self.committer.recorder.record(inbound.handled(changes::send(messages))).await?;
        self.committer.outbox.wake_relay();
        Ok(())
    }

    async fn undo_known(
        self: &Arc<Self>,
        request: &HostRequest<S>,
        row: &SagaRow,
        inbound: &InboundMessage,
    ) -> Result<bool, HandleError> {
        let mut saga = self.load_hosted(request, row).await?;
        let message = &inbound.message;
        let was_taken_back = saga.state.caller.as_ref().is_some_and(|caller| caller.undo.is_some());
        let caller = saga.state.caller.get_or_insert_with(|| {
            let traceparent = message.headers.traceparent.clone();
            let reply_to = request.reply_to.clone();
            let earlier = request.earlier.clone();
            Box::new(Caller { reply_to, command: None, undo: None, traceparent, earlier })
        });
        caller.undo = Some(request.by);
        // The answer of a stuck step comes later, and must name this undo then.
        if was_taken_back && saga.state.stuck.is_none() && answer_of(&saga.state).is_some() {
            let messages = self.messages.reply_again(&saga, request.by, true).into_iter().collect();
            let applied = self.committer.recorder.record(inbound.handled(changes::send(messages))).await?;
            self.committer.outbox.wake_relay();
            return Ok(!matches!(applied, Err(Miss::Saga(_))));
        }
        let next_work = self.committer.reserve_next_work(&saga.definition).await?;
        let prepared =
            self.starter.decider.decide(&mut saga, Event::UndoRequested, &AttemptDetails::default(), next_work);
        // The machine refuses only operators' actions.
        let Ok(mut prepared) = prepared else { return Ok(true) };
        if prepared.changes.messages.is_empty() {
            // The step had no effect: there is nothing to undo.
            prepared.changes.messages.extend(self.messages.reply_again(&saga, request.by, true));
        }
        self.committer.commit_inbound(prepared, inbound).await
    }

    /// Handles an undo of a step that has no row here. If the coordinator knows that the step was done, it is undone with the content
    /// of the message. Otherwise a tombstone stops a late command.
    async fn undo_unknown(
        self: &Arc<Self>,
        request: &HostRequest<S>,
        inbound: &InboundMessage,
        event_message: Option<NewMessage>,
    ) -> Result<bool, HandleError> {
        let message = &inbound.message;
        let (input, output) = match &request.mapped {
            Some(mapped) => (mapped.input.clone(), None),
            None => undo_content(request, message).map_err(|problem| {
                HandleError::Dead(DeadLetterReason::Undecodable, format!("its content: {problem}"))
            })?,
        };
        let caller = Caller {
            reply_to: request.reply_to.clone(),
            command: None,
            undo: Some(request.by),
            traceparent: message.headers.traceparent.clone(),
            earlier: request.earlier.clone(),
        };
        let (state, event) = state_of_early_undo(&request.definition, output.is_some(), caller);
        let mut new = self.new_hosted(request, message, &input, state).await?;
        let mut saga = in_flight(&request.definition, &new).map_err(unreadable)?;
        // What is decided now goes into its start, by which it gets its first version.
        saga.version = 0;
        let next_work = NextWork { ids: new.id.0 + 1, slot: NextSlot::Nowhere };
        let details = AttemptDetails { output, ..AttemptDetails::default() };
        // The saga starts as taken back: a step that was done is undone, and one that did not begin never does.
        let Ok(mut prepared) = self.starter.decider.decide(&mut saga, event, &details, next_work) else {
            return Ok(true);
        };
        // Start and advance are one row.
        if let Some(advance) = prepared.changes.saga.take() {
            (new.status, new.state) = (advance.status, saga.state.encode());
        }
        prepared.changes.start = Some(Box::new(new));
        prepared.changes.messages.extend(event_message);
        self.committer.commit_inbound(prepared, inbound).await
    }

    /// Leaves a tombstone for a step that has not begun, and emits an event in the same commit; false if the saga moved meanwhile.
    pub(crate) async fn tombstone_and_emit(
        self: &Arc<Self>,
        request: &HostRequest<S>,
        inbound: &InboundMessage,
        event: Option<NewMessage>,
    ) -> Result<bool, HandleError> {
        self.undo_unknown(request, inbound, event).await
    }

    pub(crate) fn request_of(&self, inbound: &InboundMessage) -> Result<HostRequest<S>, HandleError> {
        // The process that stored the message checked it, but this one may host other steps.
        self.validator.check(&inbound.message, &inbound.source)?;
        let headers = &inbound.message.headers;
        let step = headers.step.as_deref().unwrap_or_default();
        let unknown =
            || HandleError::Dead(DeadLetterReason::UnknownStep, format!("the step `{step}` is not hosted here"));
        let named = step_or_item(step).ok();
        let definition =
            named.and_then(|(name, _)| self.validator.hosted(&inbound.source, name)).ok_or_else(unknown)?;
        let key = Key::from_message(headers.saga_key.as_deref().unwrap_or_default());
        let key = key.map_err(|problem| HandleError::Dead(DeadLetterReason::Unreadable, problem.to_string()))?;
        self.check_age(inbound.age)?;
        let earlier = carried_locks(definition, headers.locks.as_deref())
            .map_err(|problem| HandleError::Dead(DeadLetterReason::Unreadable, problem))?;
        Ok(HostRequest::of_message(definition, key.hosted(step), &inbound.message, earlier))
    }

    /// Refuses a message that is older than the records: whether its step was done before is no longer known.
    pub(crate) fn check_age(&self, age: Duration) -> Result<(), HandleError> {
        let horizon = self.ctx.settings.message_age_max();
        if age > horizon {
            let (age, limit) = (age.as_secs(), horizon.as_secs());
            let detail = format!("it was committed {age} s ago, and records are kept for {limit} s at least");
            return Err(HandleError::Dead(DeadLetterReason::TooOld, detail));
        }
        Ok(())
    }

    /// The rows of a new hosted step. The id after its own is for its command.
    pub(crate) async fn new_hosted(
        &self,
        request: &HostRequest<S>,
        message: &Message,
        input: &[u8],
        state: SagaState,
    ) -> Result<NewSaga, HandleError> {
        let later = || HandleError::Later { why: "the store gave no ids".to_owned(), is_counted: false };
        let ids = self.committer.store_calls.take_ids(2).await.ok_or_else(later)?;
        let Definition { id, digest, .. } = &*request.definition;
        Ok(NewSaga {
            input: input.to_vec(),
            input_hash: request.mapped.as_ref().map_or_else(|| request_hash(input), |mapped| mapped.hash.clone()),
            state: state.encode(),
            ..NewSaga::new(SagaId(ids.start), &message.tenant, request.key.clone(), id.clone(), *digest)
        })
    }

    pub(crate) async fn load_hosted(
        &self,
        request: &HostRequest<S>,
        row: &SagaRow,
    ) -> Result<SagaInstance<S>, HandleError> {
        let records = self.ctx.store.records_of(&row.tenant, &row.key).await?;
        SagaInstance::of_row(row, records, &request.definition).map_err(unreadable)
    }
}

fn unreadable(why: String) -> HandleError {
    HandleError::Later { why, is_counted: true }
}
