//! What an event that arrives means here.
//!
//! An event that arrives is turned into a message for each thing that is done when it comes, before it is stored: with the
//! reaction's name as its step and the event's id as its correlation. Each is stored, tried again and buried by itself.

use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::super::arrivals::InboundMessage;
use super::super::canonical::request_hash;
use super::super::hosted::{HostRequest, MappedEvent};
use super::super::letters::HandleError;
use super::super::shared::EngineContext;
use crate::choreography::{Reaction, Reacts};
use crate::key::{Key, StepId, Tenant};
use crate::saga::{Definition, Mapping};
use crate::step::Outputs;
use crate::store::{
    Changes, DeadLetterReason, Message, MessageId, MessageKind, NewReceived, RecordedOutcome, SagaRow, Status, Store,
    WorkId,
};

/// How soon an event that waits for what its step needs is looked at again: after a quarter of its age, within these.
const WAIT_MIN: Duration = Duration::from_millis(100);
const WAIT_MAX: Duration = Duration::from_secs(30);
/// The longest name of a service or of a step with its number, with room to spare.
const NAME_BYTES_MAX: usize = 80;
/// Numbers of events are from here on, so that none is that of an item of a list, of which there are fewer than 2^32: a step
/// that is done for each event here and for each item of a list of another service has a key of its own for each.
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

impl<S: Store> EngineContext<S> {
    /// What a service receives beside what is addressed to it.
    pub(in crate::engine) fn topics_of(&self, service: &str) -> Vec<String> {
        let mut topics: Vec<String> =
            self.reactions_of(service).map(|reaction| reaction.topic.as_ref().to_owned()).collect();
        topics.sort_unstable();
        topics.dedup();
        topics
    }

    /// Reads the store's clock, where that was not done lately: what an event causes is timed by it.
    pub(in crate::engine) async fn read_clock(&self) {
        if self.store_clock.now(self.env.now()).is_none()
            && let Some(receipt) = self.retry_store("receive", || self.store.receive(Vec::new())).await
        {
            self.store_clock.set(receipt.now, self.env.now());
        }
    }

    /// What is done here for an event that came for this service. One that nothing is done for is left as it is, and is
    /// found to be unwanted; one that shares its topic with wanted ones is passed over.
    pub(in crate::engine) fn meant_by(&self, mut event: Message, service: &str) -> Vec<Message> {
        if let Some(now) = self.store_clock.now(self.env.now()) {
            // Or a deadline would wait as long as the sender's clock is ahead.
            event.committed_at = event.committed_at.min(now);
        }
        let wanted: Vec<_> = self.reactions_of(service).filter(|reaction| reaction.is_to(&event)).collect();
        if wanted.is_empty() {
            let shares_topic =
                |reaction: &Reaction<S>| *reaction.topic == *event.topic && reaction.event != event.topic;
            return if self.reactions_of(service).any(shares_topic) {
                Vec::new()
            } else {
                vec![for_service(event, service)]
            };
        }
        wanted.into_iter().map(|reaction| meant(&event, service, &reaction.name())).collect()
    }

    /// Whether an event can be handled at all.
    pub(in crate::engine) fn check_event(&self, message: &Message, service: &str) -> Result<(), HandleError> {
        let key = message.headers.saga_key.as_deref().unwrap_or_default();
        Key::from_message(key)
            .map_err(|problem| HandleError::Dead(DeadLetterReason::Unreadable, problem.to_string()))?;
        self.reaction(message, service).map(drop)
    }

    /// Whether a report can be handled at all.
    pub(in crate::engine) fn check_fact(&self, message: &Message, service: &str) -> Result<(), HandleError> {
        if !self.reactions_of(service).any(|reaction| matches!(reaction.does, Reacts::Mark(_))) {
            let detail = format!("the service `{service}` does not follow sagas; let one of its events mark them");
            return Err(HandleError::Dead(DeadLetterReason::NoSubscriber, detail));
        }
        for (name, text) in [("saga-step", &message.headers.step), ("saga-reply-to", &message.headers.reply_to)] {
            if text.as_ref().is_none_or(|text| text.is_empty() || text.len() > NAME_BYTES_MAX) {
                let detail = format!("the header `{name}` is missing, or too long");
                return Err(HandleError::Dead(DeadLetterReason::Unreadable, detail));
            }
        }
        saga_key_of(message).map(drop)
    }

    /// Does what a service does when an event comes.
    pub(in crate::engine) async fn handle_event(self: &Arc<Self>, arrived: &InboundMessage) -> Result<(), HandleError> {
        let (message, service) = (&arrived.message, &arrived.source);
        if message.headers.step.is_none() && self.reactions_of(service).any(|reaction| reaction.is_to(message)) {
            return self.take_apart(arrived).await;
        }
        self.check_event(message, service)?;
        match &self.reaction(message, service)?.does {
            Reacts::Run { .. } => match self.wanted_by_event(arrived).await? {
                Wanted::Run(asked) => self.begin_hosted(&asked, arrived).await,
                Wanted::Bar(asked) => self.undo_hosted(&asked, arrived).await,
                Wanted::Known(asked, row) => self.answer_again(&asked, &row, arrived).await,
                // It waits for a thing that has a name, however long that takes: it is no attempt.
                Wanted::Wait => self.look_later(arrived, (arrived.age / 4).clamp(WAIT_MIN, WAIT_MAX)).await,
            },
            Reacts::Undo { definition } => {
                self.check_age(arrived)?;
                let asked = barring(definition, message)?;
                self.undo_hosted(&asked, arrived).await
            }
            Reacts::Bar { definition } => self.handle_bar(definition, arrived).await,
            Reacts::Mark(mark) => self.handle_mark(*mark, arrived).await,
            Reacts::Deadline { pivot, after, tell } => self.handle_deadline(pivot, *after, tell, arrived).await,
        }
    }

    /// Whether it may be handled without a row of its own: what it asks for takes effect in one commit.
    pub(in crate::engine) fn is_run_by(&self, message: &Message, service: &str) -> bool {
        matches!(self.reaction(message, service).map(|reaction| &reaction.does), Ok(Reacts::Run { .. }))
    }

    /// The step that an event asks for, with the input that is made of the event.
    pub(in crate::engine) async fn asked_by_event(
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
        let Reacts::Run { definition, input, is_each } = &self.reaction(message, service)?.does else {
            return Err(HandleError::Later { why: "it asks for no step".to_owned(), is_counted: true });
        };
        self.check_age(arrived)?;
        let (saga_key, by) = (saga_key_of(message)?, event_id_of(message));
        let step = definition.steps[0].name;
        let key = if *is_each { saga_key.hosted_for_event(step, number_of(by)) } else { saga_key.hosted(step) };
        let by = by.0.as_u128();
        let asked = |input, earlier| {
            let made = Some(MappedEvent { input, hash: request_hash(&message.payload), earlier });
            HostRequest { definition: Arc::clone(definition), key: key.clone(), reply_to: String::new(), by, made }
        };
        let earlier = match self.earlier_of(definition, &message.tenant, &saga_key).await? {
            Earlier::Known(earlier) => earlier,
            Earlier::Awaited => {
                let row = self.store.saga(&message.tenant, &key).await?;
                return Ok(row.map_or(Wanted::Wait, |row| Wanted::Known(asked(Vec::new(), Vec::new()), Box::new(row))));
            }
            Earlier::Undone => return Ok(Wanted::Bar(HostRequest { key, ..barring(definition, message)? })),
        };
        match made_of(input, message) {
            Ok(input) => Ok(Wanted::Run(asked(input, earlier))),
            // What was made of it the first time is kept.
            Err(problem) => match self.store.saga(&message.tenant, &key).await? {
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
            let row = self.store.saga(tenant, &key).await?;
            let is_undone = row.is_some_and(|row| row.status == Status::Compensated);
            if is_undone && reads.is_awaited {
                return Ok(Earlier::Undone);
            }
            let records = if is_undone { Vec::new() } else { self.store.records_of(tenant, &key).await? };
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
        let parts = self.meant_by(arrived.message.clone(), &arrived.source);
        let later = || HandleError::Later { why: "the store gave no ids".to_owned(), is_counted: false };
        let ids = self.take_ids(parts.len()).await.ok_or_else(later)?;
        let row = |(message, id)| NewReceived { work: WorkId(id), message, lease: None };
        self.store.receive(parts.into_iter().zip(ids).map(row).collect()).await?;
        // The parts have ids of their own, which are the same if this is done again.
        let _ = self.recorder.record(arrived.handled(Changes::default())).await?;
        self.inbox_filled.notify_one();
        Ok(())
    }

    fn reaction(&self, message: &Message, service: &str) -> Result<&Reaction<S>, HandleError> {
        let name = message.headers.step.as_deref().unwrap_or_default();
        let found = self.reactions_of(service).find(|reaction| reaction.is_to(message) && reaction.name() == name);
        found.ok_or_else(|| {
            let detail = format!("the service `{service}` does nothing when the event `{}` comes", message.event_type);
            HandleError::Dead(DeadLetterReason::NoSubscriber, detail)
        })
    }

    fn reactions_of(&self, service: &str) -> impl Iterator<Item = &Reaction<S>> {
        self.reactions.get(service).into_iter().flat_map(|reactions| reactions.iter())
    }
}

impl<S: Store> Reaction<S> {
    fn is_to(&self, event: &Message) -> bool {
        *self.topic == *event.topic && self.event == event.event_type
    }
}

/// A step that an event takes back: nothing is known of what it took.
pub(super) fn barring<S: Store>(
    definition: &Arc<Definition<S>>,
    message: &Message,
) -> Result<HostRequest<S>, HandleError> {
    let key = saga_key_of(message)?.hosted(definition.steps[0].name);
    let by = event_id_of(message).0.as_u128();
    let made = Some(MappedEvent { input: b"null".to_vec(), hash: Vec::new(), earlier: Vec::new() });
    Ok(HostRequest { definition: Arc::clone(definition), key, reply_to: String::new(), by, made })
}

fn made_of(input: &Mapping, message: &Message) -> Result<Vec<u8>, HandleError> {
    input.apply(&message.payload, &Outputs::new()).map_err(|problem| {
        HandleError::Dead(DeadLetterReason::Undecodable, format!("no input can be made of the event: {problem}"))
    })
}

fn saga_key_of(message: &Message) -> Result<Key, HandleError> {
    let key = Key::from_message(message.headers.saga_key.as_deref().unwrap_or_default());
    key.map_err(|problem| HandleError::Dead(DeadLetterReason::Unreadable, problem.to_string()))
}

/// The id of the event, not of the part of it that is handled.
fn event_id_of(message: &Message) -> MessageId {
    message.headers.correlation.unwrap_or(message.id)
}

/// The number of an event in the step keys of what is done for it.
fn number_of(event: MessageId) -> u64 {
    let hash = Sha256::digest(event.0.as_bytes());
    hash.iter().take(8).fold(0, |number, byte| (number << 8) | u64::from(*byte)) | NUMBERS_FROM
}

/// The event as it came for a service. Its saga is the one that it names, or else the one of its ordering key.
pub(in crate::engine) fn for_service(event: Message, service: &str) -> Message {
    debug_assert_eq!(event.kind, MessageKind::Event);
    let mut event = event;
    event.headers.service = Some(service.to_owned());
    (event.headers.step, event.headers.correlation) = (None, None);
    event.headers.saga_key.get_or_insert_with(|| event.key.clone());
    event
}

/// The part of an event that one reaction is about. It has an id of its own, which is always the same.
fn meant(event: &Message, service: &str, reaction: &str) -> Message {
    let mut hash = Sha256::new_with_prefix("reaction-1");
    for part in [event.id.0.as_bytes().as_slice(), service.as_bytes(), reaction.as_bytes()] {
        hash.update(part);
        hash.update([0]);
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.finalize()[..16]);
    let mut message = for_service(event.clone(), service);
    message.headers.correlation = Some(event.id);
    message.headers.step = Some(reaction.to_owned());
    message.id = MessageId(Uuid::from_bytes(bytes));
    message
}
