//! What an operator sees and does, with a runtime or on a bare store.

mod admin_context;
mod audit;
mod batch;
mod batch_plan;
mod cancel;
mod control_error;
mod dead_letters;
mod due_now;
mod migrate;
mod outbox;
mod outline;
mod pause;
mod query;
mod restart;
mod retry_now;
mod saga_admin;
mod saga_control;
mod signal;
mod status;
mod stuck;
mod stuck_action;
mod stuck_input;
mod tenant_store;
mod timelines;

pub(crate) use self::admin_context::AdminContext;
pub use self::audit::{AuditEntry, AuditRecord, ReplacedInput};
pub use self::batch_plan::{BatchAction, BatchFilter, BatchPlan, BatchResult, BatchSummary, PlannedAction};
pub use self::cancel::CancelOutcome;
pub(crate) use self::cancel::{cancel, end_overdue};
pub use self::dead_letters::DeadLetterAdmin;
pub use self::migrate::MigrationReport;
pub use self::outbox::OutboxAdmin;
pub use self::outline::WaitKind;
pub use self::pause::{PauseOutcome, ResumeOutcome};
pub use self::query::{SagaQuery, Unregistered};
pub use self::restart::RestartOutcome;
pub use self::saga_admin::SagaAdmin;
pub use self::saga_control::SagaControl;
pub use self::signal::SignalOutcome;
pub use self::status::{
    ChildStatus, HistoryEvent, ItemCounts, PausedBy, SagaStatus, SagaSummary, StepProgress, StepStatus,
};
pub(crate) use self::tenant_store::AdminRuntime;
pub use self::timelines::TimelineStatus;
