//! What an operator sees and does, with a runtime or on a bare store.

mod admin_context;
mod audit;
mod batch;
mod batch_plan;
mod control;
mod dead_letters;
mod migrate_all;
mod outbox;
pub(crate) mod query;
mod retention;
mod saga_admin;
mod tenant_store;

pub(crate) use self::admin_context::AdminContext;
pub use self::audit::{AuditEntry, AuditRecord, ReplacedInput};
pub use self::batch_plan::{BatchAction, BatchFilter, BatchPlan, BatchResult, BatchSummary, PlannedAction};
pub(crate) use self::control::cancel::{cancel, end_overdue};
pub use self::control::control_outcome::ControlOutcome;
pub use self::control::restart::RestartOutcome;
pub use self::control::saga_control::SagaControl;
pub use self::control::signal::SignalOutcome;
pub use self::dead_letters::DeadLetterAdmin;
pub use self::migrate_all::MigrationReport;
pub use self::outbox::OutboxAdmin;
pub use self::query::lock_status::{LockScope, LockStatus, LockedStatus, SemanticLockStatus, SemanticLocksFilter};
pub use self::query::outline::WaitKind;
pub use self::query::query::{SagaQuery, Unregistered};
pub use self::query::saga_moves::SagaMoves;
pub use self::query::status::{HistoryEvent, PausedBy, SagaStatus, SagaSummary};
pub use self::query::step_status::{ChildStatus, ItemCounts, StepProgress, StepStatus};
pub use self::query::timelines::TimelineStatus;
pub use self::retention::{RetentionAdmin, RetentionDue, RetentionPolicy};
pub use self::saga_admin::SagaAdmin;
pub(crate) use self::tenant_store::AdminRuntime;
