//! Messages that could not be handled.

use async_trait::async_trait;

use super::headers::SAGA_KEY;
use crate::key::Tenant;
use crate::store::{Message, StoreError, Timestamp, WorkId};

/// The id of a dead letter's row. [`Ids::reserve_ids`](crate::store::Ids::reserve_ids) hands it out; no id is used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeadLetterId(pub i64);

/// Why a message could not be handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeadLetterReason {
    /// It is malformed: a part of the protocol is missing, or of the wrong type.
    Unreadable,
    /// It has more bytes than the settings allow.
    TooLarge,
    /// It was committed longer ago than step records are kept.
    TooOld,
    /// It is addressed to a service, or concerns a step, that this process does not host.
    UnknownStep,
    /// It belongs to a tenant that this process does not serve.
    OtherTenant,
    /// Its content does not decode as the step's input.
    Undecodable,
    /// Its step key was used with another content.
    PayloadMismatch,
    /// Handling it failed as often as the settings allow.
    OutOfAttempts,
    /// The transport gave it up.
    DeliveryLimit,
    /// This process has no handler for messages of its kind.
    NoSubscriber,
    /// Its sender is not authenticated, or is not allowed to send it.
    NotAuthorized,
    /// It could not be sent, and an operator discarded it.
    Unsendable,
}

impl DeadLetterReason {
    const NAMES: [(Self, &'static str); 12] = [
        (Self::Unreadable, "unreadable"),
        (Self::TooLarge, "too-large"),
        (Self::TooOld, "too-old"),
        (Self::UnknownStep, "unknown-step"),
        (Self::OtherTenant, "other-tenant"),
        (Self::Undecodable, "undecodable"),
        (Self::PayloadMismatch, "other-payload"),
        (Self::OutOfAttempts, "out-of-attempts"),
        (Self::DeliveryLimit, "given-up"),
        (Self::NoSubscriber, "unwanted"),
        (Self::NotAuthorized, "not-authorized"),
        (Self::Unsendable, "unsendable"),
    ];

    /// The reason as it is stored and shown.
    pub fn as_str(self) -> &'static str {
        Self::NAMES.iter().find(|(reason, _)| *reason == self).map_or("", |(_, name)| name)
    }

    /// The reason of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, name)| *name == text).map(|(reason, _)| *reason)
    }
}

/// The state of a dead letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeadLetterState {
    /// It waits for a decision.
    Open,
    /// It was replayed.
    Replayed,
    /// A person decided that it is not needed.
    Discarded,
}

impl DeadLetterState {
    const ALL: [Self; 3] = [Self::Open, Self::Replayed, Self::Discarded];

    /// The state as it is stored and shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Replayed => "replayed",
            Self::Discarded => "discarded",
        }
    }

    /// The state of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// A message that could not be handled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDeadLetter {
    /// The row's id.
    pub id: DeadLetterId,
    /// The same for the same message from the same source, each time that it arrives.
    pub fingerprint: [u8; 32],
    /// The tenant, as far as it is known; otherwise the default tenant.
    pub tenant: Tenant,
    /// A sentence that says the reason.
    pub reason: DeadLetterReason,
    /// The same in a sentence.
    pub detail: String,
    /// Where it came from, such as the name of a subscription.
    pub source: String,
    /// The headers as they arrived, as far as they are texts.
    pub headers: Vec<(String, String)>,
    /// The content as it arrived, truncated where it is too large to be kept.
    pub payload: Vec<u8>,
    /// The message, where it could be read: only such a letter can be replayed.
    pub message: Option<Message>,
    /// How often it was tried.
    pub attempts: u32,
}

impl NewDeadLetter {
    /// The key of the saga that caused the message, as its headers have it. The text is the sender's.
    pub fn saga_key(&self) -> Option<&str> {
        let header = self.headers.iter().find(|(name, _)| name == SAGA_KEY);
        header.map(|(_, text)| &**text)
    }

    /// A letter of one attempt, still without headers, content and message.
    pub(crate) fn new(
        id: DeadLetterId,
        fingerprint: [u8; 32],
        reason: DeadLetterReason,
        detail: &str,
        source: &str,
    ) -> Self {
        Self {
            id,
            fingerprint,
            tenant: Tenant::default(),
            reason,
            detail: detail.to_owned(),
            source: source.to_owned(),
            headers: Vec::new(),
            payload: Vec::new(),
            message: None,
            attempts: 1,
        }
    }
}

/// A dead letter as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// The letter as it was inserted.
    pub letter: NewDeadLetter,
    /// How often it arrived, at least 1.
    pub seen: u64,
    /// When it first arrived.
    pub first_seen_at: Timestamp,
    /// The outcome.
    pub state: DeadLetterState,
    /// When it was replayed or discarded.
    pub decided_at: Option<Timestamp>,
    /// The reason that the operator gave.
    pub note: Option<String>,
}

impl DeadLetter {
    /// A letter that waits for a decision.
    pub fn open(letter: NewDeadLetter, at: Timestamp) -> Self {
        Self { letter, seen: 1, first_seen_at: at, state: DeadLetterState::Open, decided_at: None, note: None }
    }

    /// Keeps a decision, its time and its note.
    pub fn decide(&mut self, state: DeadLetterState, note: &str, at: Timestamp) {
        self.state = state;
        self.decided_at = Some(at);
        self.note = Some(note.to_owned());
    }
}

/// Which dead letters to list. All conditions that are set must hold.
#[derive(Debug, Clone)]
pub struct DeadLetterFilter {
    /// The tenant. The default filter lists the default tenant's.
    pub tenant: Tenant,
    /// Only letters in this state. The default is open.
    pub state: Option<DeadLetterState>,
    /// Only letters with this reason.
    pub reason: Option<DeadLetterReason>,
    /// Only letters with an id above this one: the next page begins here.
    pub after: Option<DeadLetterId>,
    /// The most letters to return. The default is 100.
    pub limit: usize,
}

impl Default for DeadLetterFilter {
    fn default() -> Self {
        Self { tenant: Tenant::default(), state: Some(DeadLetterState::Open), reason: None, after: None, limit: 100 }
    }
}

/// Keeping messages that could not be handled.
///
/// [`Changes`](crate::store::Changes) insert dead letters too, in the commit that ends the row of `work` of their message.
///
/// # Contract
/// - `S-DEAD-1` [`add_dead_letters`](DeadLetters::add_dead_letters) inserts letters, open and seen once, in one commit. When it returns, they are as durable as the store is. [`dead_letter`](DeadLetters::dead_letter) returns all that was inserted.
/// - `S-DEAD-2` Of letters with one fingerprint at most one is open. A letter with the fingerprint of an open one adds 1 to the open one's `seen`, changes nothing else, and is answered with false. After a decision it is a letter of its own.
/// - `S-DEAD-3` [`dead_letters`](DeadLetters::dead_letters) orders by id, obeys every field of the filter, and never returns more than `limit`.
/// - `S-DEAD-4` [`replay_dead_letter`](DeadLetters::replay_dead_letter) marks an open letter of that tenant as replayed and inserts, in the same commit, a free row of `work` with its message, due at once, whether or not the message's id was received before; from then on the id counts as received. It answers the state that it found; a letter that is not open, or has no message, stays as it is.
/// - `S-DEAD-5` [`discard_dead_letter`](DeadLetters::discard_dead_letter) marks an open letter of that tenant as discarded, and answers the state that it found; a letter that is not open stays as it is.
/// - `S-DEAD-6` A decision keeps its time and its note for as long as the letter is kept; no later decision changes them.
#[async_trait]
pub trait DeadLetters: Send + Sync {
    /// Inserts letters; answers in the order of the request whether each is new.
    async fn add_dead_letters(&self, letters: Vec<NewDeadLetter>) -> Result<Vec<bool>, StoreError>;

    /// The letters that pass the filter.
    async fn dead_letters(&self, filter: &DeadLetterFilter) -> Result<Vec<DeadLetter>, StoreError>;

    /// The letter of that id, if it belongs to that tenant.
    async fn dead_letter(&self, tenant: &Tenant, id: DeadLetterId) -> Result<Option<DeadLetter>, StoreError>;

    /// Inserts an open letter's message again, in a row of `work` with this id.
    async fn replay_dead_letter(
        &self,
        tenant: &Tenant,
        id: DeadLetterId,
        work: WorkId,
        note: &str,
    ) -> Result<Option<DeadLetterState>, StoreError>;

    /// Closes an open letter.
    async fn discard_dead_letter(
        &self,
        tenant: &Tenant,
        id: DeadLetterId,
        note: &str,
    ) -> Result<Option<DeadLetterState>, StoreError>;
}
