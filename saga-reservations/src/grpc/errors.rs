//! Refusals as `google.rpc.ErrorInfo`.

use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::ReservationsError;
use crate::book::{Reason, Refusal};

/// Whose reasons these are.
const DOMAIN: &str = "reservations";

fn code_of(reason: Reason) -> Code {
    match reason {
        Reason::Insufficient
        | Reason::StaleToken
        | Reason::Expired
        | Reason::Ended
        | Reason::WrongState
        | Reason::BelowTaken => Code::FailedPrecondition,
        Reason::Conflict => Code::Aborted,
        Reason::Duplicate => Code::AlreadyExists,
        Reason::KeyReused | Reason::Invalid => Code::InvalidArgument,
        Reason::NotFound => Code::NotFound,
    }
}

/// What a server answers.
#[cfg(feature = "server")]
pub(super) fn status(error: &ReservationsError) -> Status {
    match error {
        ReservationsError::Refused(refusal) => refused(refusal),
        unavailable @ ReservationsError::Unavailable { .. } => {
            tracing::error!(error = unavailable as &dyn std::error::Error, "reservations do not answer");
            Status::unavailable(unavailable.to_string())
        }
    }
}

#[cfg(feature = "server")]
pub(super) fn refused(refusal: &Refusal) -> Status {
    let details = tonic_types::ErrorDetails::with_error_info(
        refusal.reason().as_str(),
        DOMAIN,
        std::collections::HashMap::<String, String>::new(),
    );
    Status::with_error_details(code_of(refusal.reason()), refusal.to_string(), details)
}

/// What a server's answer means.
pub(super) fn error(operation: &'static str, status: Status) -> ReservationsError {
    let info = status.get_details_error_info().filter(|info| info.domain == DOMAIN);
    match info.and_then(|info| Reason::parse(&info.reason)) {
        Some(reason) => ReservationsError::Refused(Refusal::new(reason, status.message())),
        None => ReservationsError::unavailable(operation, status),
    }
}
