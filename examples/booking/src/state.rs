//! The state of a saga in one word. It is read from the saga's status, and kept nowhere beside it.

use std::path::Path;

use saga_core::engine::SagaAdmin;
use saga_core::store::Status;
use saga_core::{SagaStatus, StepPhase};
use saga_sqlite::SqliteStore;

/// The state of the saga with this key in the orchestrator's file, whether or not the orchestrator runs.
pub async fn state_in(file: &Path, key: &str) -> anyhow::Result<&'static str> {
    let store = SqliteStore::read_only(file).await?;
    let status = SagaAdmin::new(store).query().status(key).await?;
    Ok(status.as_ref().map_or("NOT_STARTED", state_of))
}

/// The state of a saga with this status.
pub fn state_of(status: &SagaStatus) -> &'static str {
    match status.summary.status {
        Status::Running => awaited(status),
        Status::Compensating => undone(status),
        Status::Completed => "COMPLETED",
        Status::Compensated => "CANCELLED",
        Status::Stuck => "NEEDS_OPERATOR",
        Status::Paused => "PAUSED",
    }
}

/// What a running saga waits for: the first step that is not done.
fn awaited(status: &SagaStatus) -> &'static str {
    let step = status.steps.iter().find(|step| !matches!(step.phase, StepPhase::Done | StepPhase::Skipped));
    match step.map(|step| step.step.as_str()) {
        Some("card-account") => "AWAITING_CARD",
        Some("reserve") => "AWAITING_SEAT",
        Some("create-booking") => "AWAITING_BOOKING",
        Some("process-payment") => "AWAITING_PAYMENT",
        Some("confirm") => "CONFIRMING_SEAT",
        Some("send-notification") => "AWAITING_NOTIFICATION",
        _ => "RUNNING",
    }
}

/// What a saga that turned round is undoing.
fn undone(status: &SagaStatus) -> &'static str {
    let step = status.steps.iter().find(|step| step.phase == StepPhase::Undoing);
    match step.map(|step| step.step.as_str()) {
        Some("create-booking") => "CANCELLING_BOOKING",
        Some("reserve") => "RELEASING_SEAT",
        _ => "COMPENSATING",
    }
}
