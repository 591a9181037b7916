//! The engine: the components that start, schedule, execute, decide, commit, relay and recover.
//!
//! Each folder is a component. A component knows only those above it in this list.

mod context;
mod lifecycle;
mod health;
mod store_calls;
mod queue;
mod membership;
mod bulkhead;
mod instance;
mod statistics;
mod outcome;
mod message;
mod schedule;
mod outbox;
mod decide;
mod commit;
mod start;
mod admin;
mod execute;
mod dead_letter;
mod host;
mod coordinator;
mod choreography;
mod inbox;
mod claim;
mod runtime;

pub use self::admin::{
    AuditEntry, AuditRecord, BatchAction, BatchFilter, BatchPlan, BatchResult, BatchSummary, CancelOutcome,
    ChildStatus, DeadLetterAdmin, HistoryEvent, ItemCounts, OutboxAdmin, PauseOutcome, PausedBy, PlannedAction,
    ReplacedInput, RestartOutcome, ResumeOutcome, SagaAdmin, SagaControl, SagaQuery, SagaStatus, SagaSummary,
    SignalOutcome, StepProgress, StepStatus, TimelineStatus, Unregistered,
};
pub use self::context::{BuildError, RuntimeError, Settings, StartError};
pub use self::health::{ComponentHealth, Health};
pub use self::lifecycle::Panicked;
pub use self::outcome::Outcome;
pub use self::runtime::{
    MigrationReport, PublishError, Runtime, RuntimeBuilder, SagaHandle, UncommittedPublish, UncommittedStart,
};
pub use self::statistics::Statistics;
