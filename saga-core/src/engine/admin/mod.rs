//! What an operator sees and does, with a runtime or on a bare store.

mod audit;
mod batch_plan;
mod cancel;
mod control;
mod control_error;
mod dead_letters;
mod due_now;
mod outbox;
mod outline;
mod pause;
mod query;
mod restart;
mod retry;
mod saga_admin;
mod signal;
mod status;
mod tenant_store;
mod timelines;

pub(crate) use self::audit::reason_problem;

pub use self::audit::{AuditEntry, AuditRecord, ReplacedInput};
pub use self::batch_plan::{BatchAction, BatchFilter, BatchPlan, BatchResult, BatchSummary, PlannedAction};
pub use self::cancel::CancelOutcome;
pub use self::control::SagaControl;
pub use self::dead_letters::DeadLetterAdmin;
pub use self::outbox::OutboxAdmin;
pub use self::pause::{PauseOutcome, ResumeOutcome};
pub use self::query::{SagaQuery, Unregistered};
pub use self::restart::RestartOutcome;
pub use self::saga_admin::SagaAdmin;
pub use self::signal::SignalOutcome;
pub use self::status::{
    ChildStatus, HistoryEvent, ItemCounts, PausedBy, SagaStatus, SagaSummary, StepProgress, StepStatus,
};
pub(crate) use self::tenant_store::AdminRuntime;
pub use self::timelines::TimelineStatus;
