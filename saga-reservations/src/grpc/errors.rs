//! What a server's answer means. Refusals are `google.rpc.ErrorInfo`.

use tonic::Status;
use tonic_types::StatusExt as _;

use crate::ReservationsError;
use crate::book::{Reason, Refusal};

/// Whose reasons these are.
pub(super) const DOMAIN: &str = "reservations";

pub(super) fn error(operation: &'static str, status: Status) -> ReservationsError {
    let info = status.get_details_error_info().filter(|info| info.domain == DOMAIN);
    match info.and_then(|info| Reason::parse(&info.reason)) {
        Some(reason) => ReservationsError::Refused(Refusal::new(reason, status.message())),
        None => ReservationsError::unavailable(operation, status),
    }
}
