//! The engine: the components that start, schedule, execute, decide, commit, relay and recover.
//!
//! Each folder is a component, and knows only those below it. From the lowest to the highest:
//! lifecycle, health, context, `store_calls`, bulkhead, queue, membership, outcome, instance, statistics, message, schedule,
//! outbox, decide, commit, start, admin, execute, `dead_letter`, host, coordinator, choreography, inbox, claim, maintenance, runtime.
//! `cargo xtask tidy` checks it; ARCHITECTURE.md has four ways through them.

mod admin;
mod bulkhead;
mod choreography;
mod claim;
mod commit;
mod context;
mod coordinator;
mod dead_letter;
mod decide;
mod execute;
mod health;
mod host;
mod inbox;
mod instance;
mod lifecycle;
mod maintenance;
mod membership;
mod message;
mod outbox;
mod outcome;
mod queue;
mod runtime;
mod schedule;
mod start;
mod statistics;
mod store_calls;

pub use self::admin::{
    AuditEntry, AuditRecord, BatchAction, BatchFilter, BatchPlan, BatchResult, BatchSummary, ChildStatus,
    ControlOutcome, DeadLetterAdmin, HistoryEvent, ItemCounts, LockScope, LockStatus, LockedStatus, MigrationReport,
    OutboxAdmin, PausedBy, PlannedAction, ReplacedInput, RestartOutcome, RetentionAdmin, RetentionDue, RetentionPolicy,
    SagaAdmin, SagaControl, SagaMoves, SagaQuery, SagaStatus, SagaSummary, SemanticLockStatus, SemanticLocksFilter,
    SignalOutcome, StepProgress, StepStatus, TimelineStatus, Unregistered, WaitKind,
};
pub use self::context::{BuildError, RuntimeError, Settings, StartError, UnreadableValues};
pub use self::health::{ComponentHealth, Health};
pub use self::lifecycle::Panicked;
pub use self::outcome::{CompensationCause, Outcome, SagaFailure, SagaResult};
pub use self::runtime::{
    PublishError, PublishEvent, Runtime, RuntimeBuilder, SagaHandle, StartSaga, UncommittedPublish, UncommittedStart,
};
pub use self::statistics::Statistics;
pub use crate::machine::{Became, Happened, Mark, TimelineEntry};
