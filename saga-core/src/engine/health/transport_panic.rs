//! A transport that panicked.

use crate::transport::{TransportError, TransportErrorKind};

pub(crate) fn panicked(kind: TransportErrorKind, operation: &'static str, panic: &str) -> TransportError {
    TransportError::new(kind, operation, format!("the transport panicked: {panic}"))
}
