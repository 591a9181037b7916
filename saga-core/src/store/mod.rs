//! The contract of a store: what a backend author implements.
//!
//! A store keeps sagas, their work, step records, the outbox, received messages, dead letters and the members. It is
//! several small traits, all of them **batch-first**: every frequent call takes many rows, because one commit must be
//! able to carry many steps. The [`memory`](crate::memory) store is the reference; the conformance suite in
//! `saga-testkit` checks a store against the clauses that the traits list under `# Contract`.
//!
//! Words used in the clauses: a *lease* on a work row names an owner and ends at a time of the **store's** clock; the
//! *epoch* is the number on the row that fences off an older owner; *free* is a row without a lease, with one that has
//! ended, or with one whose owner is not a living member.
//!
//! # Cancel safety
//! Dropping the future of any call leaves the store intact: the call happened whole or not at all, and which of them is
//! not known.

mod archive;
mod changes;
mod definitions;
mod error;
mod hints;
mod idempotency;
mod interface;
pub(crate) mod json;
mod locks;
mod members;
mod messages;
mod purge;
mod records;
mod rows;
mod sagas;
mod start_in;
mod step_record;
mod transaction;
mod unclosed;
mod work;

pub use crate::key::name::{KEY_BYTES_MAX, STEP_NAME_BYTES_MAX, TENANT_BYTES_MAX};
pub use crate::key::step_id::StepId;
pub use crate::key::step_key::StepKey;

pub use self::archive::{Archive, ArchiveBatch, ArchiveError, ArchivedSaga};
pub use self::changes::{Advance, Applied, Changes, Condition, Miss, NewMessage, NewRecord, Postponed, RevisedRecord};
pub use self::definitions::{
    Definitions, NewDefinition, RewrittenRecord, SagaMigration, StoredDefinition, oldest_and_newest,
};
pub use self::error::{RetryClass, StoreError, StoreErrorKind};
pub use self::hints::{Hint, HintBoard, Hints, Listener};
pub use self::idempotency::{
    Admission, IDEMPOTENCY_KEY_BYTES_MAX, IdempotencyKey, IdempotencyKeys, InvalidIdempotencyKey, KeyVerdict,
    KeyedBody, KeyedRequest, PRINCIPAL_BYTES_MAX,
};
pub use self::interface::{Capabilities, Durability, Store};
pub use self::locks::entity::{Entity, LOCKED_ENTITIES_MAX};
pub use self::locks::lock_ring::{WaitsFor, youngest_in_ring};
pub use self::locks::locks_to_try::{LocksOfClaims, locks_to_try, share_token};
pub use self::locks::semantic_locks::{
    LockAnswer, LockFilter, LockRequest, LockState, SemanticLocks, StoredLock, Unlock,
};
pub use self::locks::wanted_lock::{KeptLock, TakenLock, WantedLock};
pub use self::members::Members;
pub use self::messages::dead_letters::{
    DeadLetter, DeadLetterFilter, DeadLetterId, DeadLetterReason, DeadLetterState, DeadLetters, NewDeadLetter,
};
pub use self::messages::headers::{Answer, Headers};
pub use self::messages::inbox::{ClaimedMessage, ClaimedMessages, Inbox, NewReceived, ReceivedBatch};
pub use self::messages::lane::{LANES, lane_of};
pub use self::messages::message::{Message, MessageKind, service_topic};
pub use self::messages::outbox::{LeasedLane, NewParked, Outbox, OutboxDepth, OutboxRow, ParkedKey};
pub use self::purge::{EndedExpired, ExpireEnded, ExpiredCount, ExpiredSaga, KeptFor, NextAge, Purge, Purged};
pub use self::records::Records;
pub use self::rows::expiry::Expiry;
pub use self::rows::failing::Failing;
pub use self::rows::history::{HistoryEntry, HistoryKind};
pub use self::rows::timestamp::Timestamp;
pub use self::rows::values::{DefinitionId, Incarnation, MemberId, MessageId, SagaId, Status, WorkId};
pub use self::rows::work_row::{Lease, NewWork, Reported, Tried, WorkKind, WorkRef, WorkStatus};
pub use self::sagas::{
    AuditFilter, AuditRow, NewSaga, SagaFilter, SagaProgress, SagaRow, SagaWithSteps, Sagas, Started,
};
pub use self::start_in::StartIn;
pub use self::step_record::{RecordedOutcome, StepRecord};
pub use self::transaction::{Claim, HandlerVerdict, MovedSaga, TransactError, TransactionBody};
pub use self::unclosed::{KnownSaga, Unclosed, UnclosedFilter, UnclosedStep, UnclosedWalk};
pub use self::work::{
    ClaimRequest, ClaimShare, ClaimStep, Claimed, ClaimedWork, Ids, ShareRequest, UnreadableWork, Work,
};
