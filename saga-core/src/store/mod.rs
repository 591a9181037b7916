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

mod changes;
mod dead_letters;
mod definitions;
mod entity;
mod error;
mod expiry;
mod failing;
mod headers;
mod hints;
mod history;
mod idempotency;
mod inbox;
mod interface;
mod lane;
mod lock_ring;
mod locks_to_try;
mod members;
mod message;
mod outbox;
mod purge;
mod records;
mod sagas;
mod semantic_locks;
mod start_in;
mod step_record;
mod timestamp;
mod transaction;
mod values;
mod wanted_lock;
mod work;
mod work_row;

pub use crate::key::step_id::StepId;

pub use self::changes::{Advance, Applied, Changes, Condition, Miss, NewMessage, NewRecord, Postponed, RevisedRecord};
pub use self::dead_letters::{
    DeadLetter, DeadLetterFilter, DeadLetterId, DeadLetterReason, DeadLetterState, DeadLetters, NewDeadLetter,
};
pub use self::definitions::{
    Definitions, NewDefinition, RewrittenRecord, SagaMigration, StoredDefinition, oldest_and_newest,
};
pub use self::entity::{Entity, LOCKED_ENTITIES_MAX};
pub use self::error::{RetryClass, StoreError, StoreErrorKind};
pub use self::expiry::Expiry;
pub use self::failing::Failing;
pub use self::headers::{Answer, Headers};
pub use self::hints::{Hint, HintBoard, Hints, Listener};
pub use self::history::{HistoryEntry, HistoryKind};
pub use self::idempotency::{
    Admission, IDEMPOTENCY_KEY_BYTES_MAX, IdempotencyKey, IdempotencyKeys, InvalidIdempotencyKey, KeyVerdict,
    KeyedBody, KeyedRequest, PRINCIPAL_BYTES_MAX,
};
pub use self::inbox::{ClaimedMessage, ClaimedMessages, Inbox, NewReceived, ReceivedBatch};
pub use self::interface::{Capabilities, Durability, Store};
pub use self::lane::{LANES, lane_of};
pub use self::lock_ring::{WaitsFor, youngest_in_ring};
pub use self::locks_to_try::locks_to_try;
pub use self::members::Members;
pub use self::message::{Message, MessageKind, service_topic};
pub use self::outbox::{LeasedLane, NewParked, Outbox, OutboxDepth, OutboxRow, ParkedKey};
pub use self::purge::{
    EndedExpired, ExpireEnded, ExpiredCount, ExpiredSaga, KEPT_AGAIN_FOR, KeptFor, NextAge, Purge, Purged,
};
pub use self::records::Records;
pub use self::sagas::{
    AuditFilter, AuditRow, NewSaga, SagaFilter, SagaProgress, SagaRow, SagaWithSteps, Sagas, Started,
};
pub use self::semantic_locks::{LockAnswer, LockFilter, LockRequest, LockState, SemanticLocks, StoredLock, Unlock};
pub use self::start_in::StartIn;
pub use self::step_record::{RecordedOutcome, StepRecord};
pub use self::timestamp::Timestamp;
pub use self::transaction::{Claim, HandlerVerdict, MovedSaga, TransactError, TransactionBody};
pub use self::values::{DefinitionId, Incarnation, MemberId, MessageId, SagaId, Status, WorkId};
pub use self::wanted_lock::{KeptLock, TakenLock, WantedLock};
pub use self::work::{ClaimRequest, ClaimShare, ClaimStep, Claimed, ClaimedWork, Ids, ShareRequest, Work};
pub use self::work_row::{Lease, NewWork, Reported, Tried, WorkKind, WorkRef, WorkStatus};
