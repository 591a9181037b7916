//! What a server answers where it refuses.

use std::collections::HashMap;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use super::errors::DOMAIN;
use crate::ReservationsError;
use crate::book::{Reason, Refusal};

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

pub(super) fn status(error: &ReservationsError) -> Status {
    match error {
        ReservationsError::Refused(refusal) => refused(refusal),
        unavailable @ ReservationsError::Unavailable { .. } => {
            tracing::error!(error = unavailable as &dyn std::error::Error, "reservations do not answer");
            Status::unavailable(unavailable.to_string())
        }
    }
}

pub(super) fn refused(refusal: &Refusal) -> Status {
    let details = ErrorDetails::with_error_info(refusal.reason().as_str(), DOMAIN, HashMap::<String, String>::new());
    Status::with_error_details(code_of(refusal.reason()), refusal.to_string(), details)
}
