//! A saga as the routes show it.

use saga_core::engine::CompensationCause;
use saga_core::store::Status;
use saga_core::{Outcome, SagaStatus};
use serde::Serialize;
use serde_json::Value;

/// A saga, with the problem inside if it failed.
#[derive(Serialize)]
pub(crate) struct Shown<'a> {
    #[serde(flatten)]
    status: &'a SagaStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<SagaProblem<'a>>,
}

/// Why a saga has no result. The request for its status succeeded, so this problem has no status of its own.
#[derive(Serialize)]
pub(super) struct SagaProblem<'a> {
    r#type: &'static str,
    title: &'static str,
    detail: String,
    step: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<CompensationCause>,
    /// The error that the step gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Value>,
}

impl<'a> Shown<'a> {
    pub(crate) fn of(status: &'a SagaStatus) -> Self {
        Self { status, problem: status.summary.outcome.as_ref().and_then(SagaProblem::of) }
    }
}

impl<'a> SagaProblem<'a> {
    fn of(outcome: &'a Outcome) -> Option<Self> {
        let detail = format!("the saga is {outcome}");
        match outcome {
            Outcome::Compensated { failed_step, reason, cause, .. } => Some(Self {
                r#type: "urn:saga:compensated",
                title: "The saga was compensated",
                detail,
                step: failed_step,
                cause: Some(*cause),
                error: reason.details(),
            }),
            Outcome::Stuck { step, .. } => Some(Self {
                r#type: "urn:saga:stuck",
                title: "The saga is stuck: an operator has to act",
                detail,
                step,
                cause: None,
                error: None,
            }),
            Outcome::Tombstone { status: Status::Compensated, .. } => Some(Self {
                r#type: "urn:saga:compensated",
                title: "The saga was compensated: nothing of it is left",
                detail,
                step: "",
                cause: None,
                error: None,
            }),
            Outcome::Completed { .. } | Outcome::Tombstone { .. } => None,
        }
    }
}
