//! Handles events: runs, undoes or tombstones the steps that react to them.
//!
//! Before an event is stored, it becomes one message for each reaction to it, with the name of the reaction as its step and the id of
//! the event as its correlation. Each is stored, retried and dead-lettered by itself.

use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::choreography::Choreography;
use crate::engine::message::{
    HandleError, HostRequest, InboundMessage, MappedEvent, event_id_of, request_hash, saga_key_of,
};
use crate::key::{Key, StepId, Tenant};
use crate::saga::{Definition, Mapping};
use crate::service::Reacts;
use crate::step::StepOutputs;
use crate::store::{
    Changes, DeadLetterReason, Message, MessageId, NewReceived, RecordedOutcome, SagaRow, Status, Store, WorkId,
};

/// An event that waits for the inputs of its step is checked again after a quarter of its age, within these limits.
const WAIT_MIN: Duration = Duration::from_millis(100);

const WAIT_MAX: Duration = Duration::from_secs(30);

/// The numbers of events begin here, above those of the items of a list, so that a step which runs per event and per item has
/// another key for each.
const NUMBERS_FROM: u64 = 1 << 63;

/// What comes of an event that asks for a step.
enum Wanted<S: Store> {
    Run(HostRequest<S>),
    /// It cannot be done any more.
    Bar(HostRequest<S>),
    /// It was asked for before, or barred.
    Known(HostRequest<S>, Box<SagaRow>),
    /// What it needs is not there yet.
    Wait,
}

/// What earlier steps returned, of those that a step reads: their names, and their outputs as JSON.
enum Earlier {
    Known(Vec<(String, String)>),
    /// One of them, whose output is needed, has not been done yet.
    Awaited,
    /// One of them, whose output is needed, has come to nothing or was taken back: there is nothing to go by.
    Undone,
}

/// A step that an event takes back: nothing is known of what it took.
pub(crate) fn tombstone_request<S: Store>(
    definition: &Arc<Definition<S>>,
    message: &Message,
) -> Result<HostRequest<S>, HandleError> {
    let key = saga_key_of(message)?.hosted(definition.steps[0].name);
    let by = event_id_of(message).0.as_u128();
    Ok(HostRequest::of_event(definition, key, by, MappedEvent { input: b"null".to_vec(), hash: Vec::new() }))
}

fn made_of(input: &Mapping, message: &Message) -> Result<Vec<u8>, HandleError> {
    input.apply(&message.payload, &StepOutputs::new()).map_err(|problem| {
        HandleError::Dead(DeadLetterReason::Undecodable, format!("no input can be made of the event: {problem}"))
    })
}

/// The number of an event in the step keys of what is done for it.
fn number_of(event: MessageId) -> u64 {
    let hash = Sha256::digest(event.0.as_bytes());
    hash.iter().take(8).fold(0, |number, byte| (number << 8) | u64::from(*byte)) | NUMBERS_FROM
}

impl<S: Store> Choreography<S> {
    /// Reads the store's clock, where that was not done lately: what an event causes is timed by it.
    pub(crate) async fn read_clock(&self) {
        if self.committer.store_calls.clock.now(self.ctx.env.now()).is_none()
            && let Some(receipt) =
                self.committer.store_calls.retry_store("receive", || self.ctx.store.receive(Vec::new())).await
        {
            self.committer.store_calls.clock.set(receipt.now, self.ctx.env.now());
        }
    }

    /// Does what a service does when an event comes.
    pub(crate) async fn handle_event(self: &Arc<Self>, arrived: &InboundMessage) -> Result<(), HandleError> {
        let (message, service) = (&arrived.message, &arrived.source);
        if message.headers.step.is_none()
            && self.validator.reactions_of(service).any(|reaction| reaction.is_to(message))
        {
            return self.take_apart(arrived).await;
        }
        self.validator.check_event(message, service)?;
        match &self.validator.reaction(message, service)?.does {
            Reacts::Run { .. } => match self.wanted_by_event(arrived).await? {
                Wanted::Run(asked) => self.host.begin_hosted(&asked, arrived).await,
                Wanted::Bar(asked) => self.leave_tombstone(&asked, arrived).await,
                Wanted::Known(asked, row) => self.host.answer_again(&asked, &row, arrived).await,
                // It waits for a thing that has a name, however long that takes: it is no attempt.
                Wanted::Wait => self.postpone(arrived, (arrived.age / 4).clamp(WAIT_MIN, WAIT_MAX)).await,
            },
            Reacts::Undo { definition } => {
                self.host.check_age(arrived.age)?;
                let asked = tombstone_request(definition, message)?;
                self.host.undo_hosted(&asked, arrived).await
            }
            Reacts::Tombstone { definition } => self.handle_tombstone(definition, arrived).await,
            Reacts::Mark(mark) => self.handle_mark(*mark, arrived).await,
            Reacts::Deadline { pivot, after, tell } => self.handle_deadline(pivot, *after, tell, arrived).await,
        }
    }

    /// The step that an event asks for, with the input that is made of the event.
    pub(crate) async fn request_of_event(
        self: &Arc<Self>,
        arrived: &InboundMessage,
    ) -> Result<HostRequest<S>, HandleError> {
        match self.wanted_by_event(arrived).await? {
            Wanted::Run(asked) => Ok(asked),
            Wanted::Bar(_) | Wanted::Known(..) | Wanted::Wait => {
                Err(HandleError::Later { why: "it is not to begin now".to_owned(), is_counted: false })
            }
        }
    }

    async fn wanted_by_event(self: &Arc<Self>, arrived: &InboundMessage) -> Result<Wanted<S>, HandleError> {
        let (message, service) = (&arrived.message, &arrived.source);
        let Reacts::Run { definition, input, is_each } = &self.validator.reaction(message, service)?.does else {
            return Err(HandleError::Later { why: "it asks for no step".to_owned(), is_counted: true });
        };
        self.host.check_age(arrived.age)?;
        let (saga_key, by) = (saga_key_of(message)?, event_id_of(message));
        let step = definition.steps[0].name;
        let key = if *is_each { saga_key.hosted_for_event(step, number_of(by)) } else { saga_key.hosted(step) };
        let by = by.0.as_u128();
        let asked = |input, earlier| {
            let made = MappedEvent { input, hash: request_hash(&message.payload) };
            HostRequest { earlier, ..HostRequest::of_event(definition, key.clone(), by, made) }
        };
        let earlier = match self.earlier_of(definition, &message.tenant, &saga_key).await? {
            Earlier::Known(earlier) => earlier,
            Earlier::Awaited => {
                let row = self.ctx.store.saga(&message.tenant, &key).await?;
                return Ok(row.map_or(Wanted::Wait, |row| Wanted::Known(asked(Vec::new(), Vec::new()), Box::new(row))));
            }
            Earlier::Undone => {
                // A step that was done before stays: only the undos that are declared take it back.
                return Ok(match self.ctx.store.saga(&message.tenant, &key).await? {
                    Some(row) => Wanted::Known(asked(Vec::new(), Vec::new()), Box::new(row)),
                    None => Wanted::Bar(HostRequest { key, ..tombstone_request(definition, message)? }),
                });
            }
        };
        match made_of(input, message) {
            Ok(input) => Ok(Wanted::Run(asked(input, earlier))),
            // What was made of it the first time is kept.
            Err(problem) => match self.ctx.store.saga(&message.tenant, &key).await? {
                Some(row) => Ok(Wanted::Known(asked(Vec::new(), earlier), Box::new(row))),
                None => Err(problem),
            },
        }
    }

    /// What earlier steps of the saga returned here, of those that this one reads.
    async fn earlier_of(
        &self,
        definition: &Definition<S>,
        tenant: &Tenant,
        saga_key: &Key,
    ) -> Result<Earlier, HandleError> {
        let mut earlier = Vec::new();
        for reads in definition.told.iter().flat_map(|told| &told.reads) {
            let key = saga_key.hosted(reads.step);
            let row = self.ctx.store.saga(tenant, &key).await?;
            let is_undone = row.is_some_and(|row| row.status == Status::Compensated);
            if is_undone && reads.is_awaited {
                return Ok(Earlier::Undone);
            }
            let records = if is_undone { Vec::new() } else { self.ctx.store.records_of(tenant, &key).await? };
            let done = StepId::doing(reads.step);
            let is_done = |outcome| matches!(outcome, RecordedOutcome::Done | RecordedOutcome::Skipped);
            let output = records.into_iter().find(|record| record.step == done && is_done(record.outcome));
            let output = output.and_then(|record| String::from_utf8(record.output?).ok());
            match output {
                Some(output) => earlier.push((reads.step.to_owned(), output)),
                None if reads.is_awaited => return Ok(Earlier::Awaited),
                None => {}
            }
        }
        Ok(Earlier::Known(earlier))
    }

    /// An event that was put into its row as it came, since nothing was done for it at the time.
    async fn take_apart(self: &Arc<Self>, arrived: &InboundMessage) -> Result<(), HandleError> {
        let parts = self.validator.for_reactions(arrived.message.clone(), &arrived.source);
        let later = || HandleError::Later { why: "the store gave no ids".to_owned(), is_counted: false };
        let ids = self.committer.store_calls.take_ids(parts.len()).await.ok_or_else(later)?;
        let row = |(message, id)| NewReceived { work: WorkId(id), message, lease: None };
        self.ctx.store.receive(parts.into_iter().zip(ids).map(row).collect()).await?;
        // The parts have ids of their own, which are the same if this is done again.
        let _ = self.committer.recorder.record(arrived.handled(Changes::default())).await?;
        self.committer.inbox_filled.notify_one();
        Ok(())
    }
}
