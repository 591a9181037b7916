use std::time::Duration;

use lapin::protocol::{AMQPErrorKind, AMQPHardError, AMQPSoftError};
use lapin::{Error, ErrorKind};
use saga_core::transport::{TransportError, TransportErrorKind};

/// One sentence about a call that failed: what was being done, what the broker says, and what helps.
pub(crate) fn describe(doing: &str, error: &Error) -> String {
    match remedy(error) {
        Some(remedy) => format!("cannot {doing}: {}; {remedy}", said(error)),
        None => format!("cannot {doing}: {}", said(error)),
    }
}

/// The error of a call that failed before anything was handed to the broker.
pub(crate) fn failed(operation: &'static str, doing: &str, error: &Error) -> TransportError {
    let kind = if is_lasting(error) { TransportErrorKind::Refused } else { TransportErrorKind::Unavailable };
    TransportError::new(kind, operation, describe(doing, error))
}

/// The error of a queue that could not be received from. One that the broker cannot serve stays so until it is deleted, so
/// here an internal error is for a person. Anywhere else it may pass, and a publish that it failed is not to be given up.
pub(crate) fn not_served(doing: &str, error: &Error) -> TransportError {
    if hard(error) == Some(AMQPHardError::INTERNALERROR) {
        return TransportError::new(TransportErrorKind::Refused, "subscribe", describe(doing, error));
    }
    failed("subscribe", doing, error)
}

/// The error of something that did not come about in time.
pub(crate) fn too_late(operation: &'static str, doing: &str, limit: Duration) -> TransportError {
    let detail =
        format!("cannot {doing}: the broker did not answer within {limit:?}; is it up, and is the address right?");
    TransportError::new(TransportErrorKind::Unavailable, operation, detail)
}

/// Whether the broker takes no message of this topic at present: it is not permitted, its exchange is missing, or is locked.
pub(crate) fn is_of_the_topic(error: &Error) -> bool {
    use AMQPSoftError as Soft;
    matches!(soft(error), Some(Soft::ACCESSREFUSED | Soft::NOTFOUND | Soft::RESOURCELOCKED))
}

/// Whether an exchange or a queue is missing.
pub(crate) fn is_not_found(error: &Error) -> bool {
    soft(error) == Some(AMQPSoftError::NOTFOUND)
}

/// Whether something arrived that the client library cannot read.
pub(crate) fn is_unreadable(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::ParsingError(_))
}

/// Whether the same call will fail again until a person changes something.
fn is_lasting(error: &Error) -> bool {
    let is_soft = matches!(
        soft(error),
        Some(AMQPSoftError::ACCESSREFUSED | AMQPSoftError::PRECONDITIONFAILED | AMQPSoftError::NOTFOUND)
    );
    is_soft || hard(error) == Some(AMQPHardError::NOTALLOWED)
}

/// The reason for which the broker closed a channel, and not its connection.
pub(crate) fn soft(error: &Error) -> Option<AMQPSoftError> {
    let ErrorKind::ProtocolError(error) = error.kind() else { return None };
    if let AMQPErrorKind::Soft(soft) = error.kind() { Some(soft.clone()) } else { None }
}

fn hard(error: &Error) -> Option<AMQPHardError> {
    let ErrorKind::ProtocolError(error) = error.kind() else { return None };
    if let AMQPErrorKind::Hard(hard) = error.kind() { Some(hard.clone()) } else { None }
}

/// What the other side says, without the library's words around it.
fn said(error: &Error) -> String {
    match error.kind() {
        ErrorKind::ProtocolError(error) => error.get_message().to_string(),
        ErrorKind::IOError(error) => error.to_string(),
        _ => error.to_string(),
    }
}

fn remedy(error: &Error) -> Option<&'static str> {
    let text = said(error);
    match (soft(error), hard(error)) {
        (Some(AMQPSoftError::ACCESSREFUSED), _) if text.contains("Login was refused") => {
            Some("check the user and the password in the address")
        }
        (Some(AMQPSoftError::ACCESSREFUSED), _) => {
            Some("give the user the permissions to configure, write and read these names, or choose another prefix")
        }
        (Some(AMQPSoftError::PRECONDITIONFAILED), _) => {
            Some("delete it, choose another prefix, or take over what is there with `Topology::Check`")
        }
        (Some(AMQPSoftError::NOTFOUND), _) => {
            Some("have it made first, or let the transport do it with `Topology::Declare`")
        }
        (_, Some(AMQPHardError::NOTALLOWED)) if text.contains("number of channels") => {
            Some("raise the limit of channels of the user, or lower `publish_channels`")
        }
        (_, Some(AMQPHardError::NOTALLOWED)) => {
            Some("check that the virtual host in the address exists and that the user may use it")
        }
        (_, Some(AMQPHardError::INTERNALERROR)) => {
            Some("the broker's log says why; a queue that it could not restart does not work until it is deleted")
        }
        _ => None,
    }
}
