//! The duty of keeping messages that could not be handled.

use async_trait::async_trait;

use super::{Message, StoreError, Timestamp, WorkId};
use crate::key::Tenant;

/// A dead letter's row. Handed out by [`Ids::reserve_ids`](super::Ids::reserve_ids), never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeadLetterId(pub i64);

/// Why a message could not be handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeadLetterReason {
    /// It is no message of this protocol: something is missing, or of the wrong kind.
    Unreadable,
    /// It has more bytes than the settings allow.
    TooLarge,
    /// It was committed longer ago than records are kept.
    TooOld,
    /// It is addressed to a service, or concerns a step, that is not hosted here.
    UnknownStep,
    /// It belongs to a tenant that is not served here.
    OtherTenant,
    /// Its content does not decode as what the step takes.
    Undecodable,
    /// Its step key was used with another content.
    PayloadMismatch,
    /// Handling it failed as often as the settings allow.
    OutOfAttempts,
    /// The transport gave it up.
    DeliveryLimit,
    /// Nobody here takes messages of its kind.
    NoSubscriber,
    /// Its sender is not proven, or may not say what it says.
    NotAuthorized,
    /// It was to leave this service, and could not be sent: a person decided against it.
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

    /// The reason as it is written down and shown.
    pub fn as_str(self) -> &'static str {
        Self::NAMES.iter().find(|(reason, _)| *reason == self).map_or("", |(_, name)| name)
    }

    /// The reason of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, name)| *name == text).map(|(reason, _)| *reason)
    }
}

/// What became of a dead letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeadLetterState {
    /// It waits for a person.
    Open,
    /// It was handed in again.
    Replayed,
    /// A person decided that it is not needed.
    Discarded,
}

impl DeadLetterState {
    const ALL: [Self; 3] = [Self::Open, Self::Replayed, Self::Discarded];

    /// The state as it is written down and shown.
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
    /// The same for the same message from the same source, however often it comes.
    pub fingerprint: [u8; 32],
    /// Whose it is, as far as that is known; else the default tenant's.
    pub tenant: Tenant,
    /// Why it could not be handled.
    pub reason: DeadLetterReason,
    /// The same in a sentence.
    pub detail: String,
    /// Where it came from, such as the name of a subscription.
    pub source: String,
    /// The headers as they came, as far as they are texts.
    pub headers: Vec<(String, String)>,
    /// The content as it came, cut where it was too large to be kept.
    pub payload: Vec<u8>,
    /// The message, where it could be read: only such a letter can be replayed.
    pub message: Option<Message>,
    /// How often it was tried.
    pub attempts: u32,
}

/// A dead letter as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// What was buried.
    pub letter: NewDeadLetter,
    /// How often it came: 1 for one that came once.
    pub seen: u64,
    /// When it came first.
    pub buried_at: Timestamp,
    /// What became of it.
    pub state: DeadLetterState,
    /// When that was decided.
    pub decided_at: Option<Timestamp>,
    /// The reason that was given for it.
    pub note: Option<String>,
}

impl DeadLetter {
    /// A letter that waits for a decision.
    pub fn open(letter: NewDeadLetter, at: Timestamp) -> Self {
        Self { letter, seen: 1, buried_at: at, state: DeadLetterState::Open, decided_at: None, note: None }
    }

    /// Keeps a decision, its time and its note.
    pub fn decide(&mut self, state: DeadLetterState, note: &str, at: Timestamp) {
        self.state = state;
        self.decided_at = Some(at);
        self.note = Some(note.to_owned());
    }
}

/// Which dead letters to list. Everything that is set must hold.
#[derive(Debug, Clone)]
pub struct DeadLetterFilter {
    /// Whose. The default filter lists those of the default tenant.
    pub tenant: Tenant,
    /// Only those in this state: those that are open, where nothing else is said.
    pub state: Option<DeadLetterState>,
    /// Only those with this reason.
    pub reason: Option<DeadLetterReason>,
    /// Only those with an id above this one: the way to the next page.
    pub after: Option<DeadLetterId>,
    /// At most so many: 100 where nothing else is said.
    pub limit: usize,
}

impl Default for DeadLetterFilter {
    fn default() -> Self {
        Self { tenant: Tenant::default(), state: Some(DeadLetterState::Open), reason: None, after: None, limit: 100 }
    }
}

/// Keeping messages that could not be handled.
///
/// A letter is also buried by [`Changes`](super::Changes), in the commit that ends the row of `work` of its message.
///
/// # Contract
/// - `S-DEAD-1` [`bury`](DeadLetters::bury) inserts letters, open and seen once, in one commit; when it returned, they are as durable as the store is. [`dead_letter`](DeadLetters::dead_letter) answers all that it was given.
/// - `S-DEAD-2` Of letters with one fingerprint at most one is open. A letter that meets an open one adds 1 to its `seen` and changes nothing else, and is answered with false; behind a decision it is a letter of its own.
/// - `S-DEAD-3` [`dead_letters`](DeadLetters::dead_letters) orders by id, obeys every field of the filter, and never returns more than `limit`.
/// - `S-DEAD-4` [`replay_letter`](DeadLetters::replay_letter) makes an open letter of that tenant replayed and inserts, in the same commit, a free row of `work` with its message, due at once, whether or not the message's id was received before; from then on the id counts as received. It answers the state that it found; a letter that was not open, or has no message, is left as it is.
/// - `S-DEAD-5` [`discard_letter`](DeadLetters::discard_letter) makes an open letter of that tenant discarded, and answers the state that it found; one that was not open is left as it is.
/// - `S-DEAD-6` A decision keeps its time and its note for ever: no later one changes them.
#[async_trait]
pub trait DeadLetters: Send + Sync {
    /// Inserts letters; answers in the order of the request whether each is new.
    async fn bury(&self, letters: Vec<NewDeadLetter>) -> Result<Vec<bool>, StoreError>;

    /// The letters that pass the filter.
    async fn dead_letters(&self, filter: &DeadLetterFilter) -> Result<Vec<DeadLetter>, StoreError>;

    /// The letter of that id, if it is that tenant's.
    async fn dead_letter(&self, tenant: &Tenant, id: DeadLetterId) -> Result<Option<DeadLetter>, StoreError>;

    /// Hands an open letter's message in again, in a row of `work` with this id.
    async fn replay_letter(
        &self,
        tenant: &Tenant,
        id: DeadLetterId,
        work: WorkId,
        note: &str,
    ) -> Result<Option<DeadLetterState>, StoreError>;

    /// Closes an open letter.
    async fn discard_letter(
        &self,
        tenant: &Tenant,
        id: DeadLetterId,
        note: &str,
    ) -> Result<Option<DeadLetterState>, StoreError>;
}
