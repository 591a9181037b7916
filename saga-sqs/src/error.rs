use std::error::Error;
use std::iter;

use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use saga_core::transport::{TransportError, TransportErrorKind};

/// A request that failed, or one message of it: what it means, and one sentence about it without any credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) cause: Cause,
    said: String,
}

/// What a failure means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The service was not reached, so it did nothing.
    Unreachable,
    /// No answer came, or one that says nothing of what was done.
    Unanswered,
    /// There were too many requests, or too many messages are under way.
    Throttled,
    /// The credentials are missing, wrong or expired.
    NotAuthenticated,
    /// The credentials do not allow this.
    NotAllowed,
    /// The queue or the topic does not exist.
    NotFound,
    /// The queue was deleted less than a minute ago.
    DeletedRecently,
    /// The message will never be taken.
    Invalid,
    /// The receipt handle is not valid, or no longer.
    VoidHandle,
    /// The service failed, and may work later.
    Internal,
}

impl Failure {
    /// The failure of a whole request.
    pub(crate) fn of<E, R>(error: &SdkError<E, R>) -> Self
    where
        E: ProvideErrorMetadata + Error + 'static,
    {
        match error {
            SdkError::ServiceError(service) => {
                let meta = service.err().meta();
                Self::said(meta.code().unwrap_or("no error code"), meta.message())
            }
            SdkError::TimeoutError(_) => Self::new(Cause::Unanswered, "no answer came in time"),
            // Nothing was sent.
            SdkError::ConstructionFailure(_) => Self::new(Cause::Internal, "the request could not be built"),
            // What the provider says of it may have a secret in it.
            SdkError::DispatchFailure(failure)
                if failure.as_connector_error().is_some_and(|error| lacks_credentials(error)) =>
            {
                Self::new(Cause::NotAuthenticated, "the provider of the credentials failed")
            }
            SdkError::DispatchFailure(failure) if failure.is_timeout() => {
                Self::new(Cause::Unanswered, "no answer came in time")
            }
            SdkError::DispatchFailure(failure) if failure.is_io() => {
                Self::new(Cause::Unreachable, "the service cannot be reached")
            }
            SdkError::DispatchFailure(_) => Self::new(Cause::Unanswered, "the connection was lost"),
            _ => Self::new(Cause::Unanswered, "the answer cannot be read"),
        }
    }

    /// The failure that the service gave this code.
    pub(crate) fn said(code: &str, message: Option<&str>) -> Self {
        let cause = cause(code, message.unwrap_or_default());
        let said = match (cause, message) {
            // Such a message may repeat what was sent, with the access key in it.
            (Cause::NotAuthenticated, _) | (_, None) => code.to_owned(),
            (_, Some(message)) => format!("{code}: {}", one_line(message)),
        };
        Self { cause, said }
    }

    fn new(cause: Cause, said: &str) -> Self {
        Self { cause, said: said.to_owned() }
    }

    /// Whether it is about the service, and not about this message, queue or topic.
    pub(crate) fn is_outage(&self) -> bool {
        matches!(self.cause, Cause::Unreachable | Cause::Throttled | Cause::NotAuthenticated)
    }

    /// Whether the same request may succeed a moment later.
    pub(crate) fn may_pass_soon(&self) -> bool {
        matches!(self.cause, Cause::Unanswered | Cause::Throttled | Cause::Internal)
    }

    /// One sentence: what was being done, what went wrong, and what helps.
    pub(crate) fn describe(&self, doing: &str) -> String {
        let said = &self.said;
        let remedy = match self.cause {
            Cause::Unreachable => "; is there a network, and are the region and the endpoint right?",
            Cause::Throttled => "; ask for a higher quota if this goes on",
            Cause::NotAuthenticated => "; check the access key, its secret, the session token and the clock",
            Cause::NotAllowed => "; allow it in the policy of the user or role: the README lists what is needed",
            Cause::DeletedRecently => "; SQS lets a minute pass before a queue of the same name can be made",
            _ => "",
        };
        format!("cannot {doing}: {said}{remedy}")
    }

    /// The error of a call that is no publishing.
    pub(crate) fn error(&self, operation: &'static str, doing: &str) -> TransportError {
        let kind = match self.cause {
            Cause::NotAllowed | Cause::Invalid | Cause::NotAuthenticated => TransportErrorKind::Refused,
            Cause::NotFound => TransportErrorKind::NoRoute,
            _ => TransportErrorKind::Unavailable,
        };
        TransportError::new(kind, operation, self.describe(doing))
    }

    /// What became of a message.
    pub(crate) fn of_message(&self, doing: &str) -> TransportError {
        let kind = match self.cause {
            Cause::Unreachable | Cause::Throttled | Cause::NotAuthenticated => TransportErrorKind::Unavailable,
            Cause::Unanswered | Cause::Internal => TransportErrorKind::Unknown,
            Cause::NotFound | Cause::DeletedRecently => TransportErrorKind::NoRoute,
            Cause::NotAllowed | Cause::VoidHandle => TransportErrorKind::Nacked,
            Cause::Invalid => TransportErrorKind::Refused,
        };
        TransportError::new(kind, "publish", self.describe(doing))
    }
}

/// Whether a request was not sent since the provider had no credentials for it.
fn lacks_credentials(error: &(dyn Error + 'static)) -> bool {
    iter::successors(Some(error), |&error| error.source()).any(<dyn Error>::is::<CredentialsError>)
}

/// By the code, in the form of either protocol: `AWS.SimpleQueueService.NonExistentQueue` or `QueueDoesNotExist`.
fn cause(code: &str, message: &str) -> Cause {
    let code = code.rsplit(['.', '#']).next().unwrap_or_default();
    let code = code.strip_suffix("Exception").unwrap_or(code);
    match code {
        "NonExistentQueue" | "QueueDoesNotExist" | "NotFound" | "ResourceNotFound" => Cause::NotFound,
        "QueueDeletedRecently" => Cause::DeletedRecently,
        "Throttling"
        | "ThrottlingException"
        | "RequestThrottled"
        | "Throttled"
        | "OverLimit"
        | "TooManyRequests"
        | "RequestLimitExceeded"
        | "KmsThrottled"
        | "KMSThrottling" => Cause::Throttled,
        "InvalidClientTokenId"
        | "UnrecognizedClient"
        | "SignatureDoesNotMatch"
        | "InvalidSignature"
        | "InvalidSecurity"
        | "IncompleteSignature"
        | "MissingAuthenticationToken"
        | "ExpiredToken"
        | "RequestExpired"
        | "InvalidAccessKeyId" => Cause::NotAuthenticated,
        "AccessDenied" | "AuthorizationError" | "NotAuthorized" | "KmsAccessDenied" | "KMSAccessDenied"
        | "KmsDisabled" | "KMSDisabled" | "OptInRequired" => Cause::NotAllowed,
        "ReceiptHandleIsInvalid" | "MessageNotInflight" => Cause::VoidHandle,
        "InvalidParameterValue" if message.contains("ReceiptHandle") || message.contains("receipt handle") => {
            Cause::VoidHandle
        }
        "InvalidMessageContents"
        | "InvalidParameterValue"
        | "InvalidParameter"
        | "BatchRequestTooLong"
        | "UnsupportedOperation"
        | "InvalidAttributeValue"
        | "Validation"
        | "ValidationError"
        | "MissingRequiredParameter"
        | "MissingParameter" => Cause::Invalid,
        _ => Cause::Internal,
    }
}

fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(code: &str, message: &str) -> TransportErrorKind {
        Failure::said(code, Some(message)).of_message("send").kind()
    }

    #[test]
    fn codes_of_both_protocols_mean_the_same() {
        for code in [
            "QueueDoesNotExist",
            "AWS.SimpleQueueService.NonExistentQueue",
            "com.amazonaws.sqs#QueueDoesNotExist",
            "NotFound",
        ] {
            assert_eq!(kind(code, ""), TransportErrorKind::NoRoute, "{code}");
        }
        for code in ["RequestThrottled", "ThrottlingException", "Throttling", "OverLimit"] {
            assert_eq!(kind(code, ""), TransportErrorKind::Unavailable, "{code}");
        }
        assert_eq!(kind("AccessDeniedException", "no"), TransportErrorKind::Nacked);
        assert_eq!(kind("InvalidParameter", "Message too long"), TransportErrorKind::Refused);
        assert_eq!(kind("InvalidMessageContents", ""), TransportErrorKind::Refused);
        assert_eq!(kind("InternalFailure", ""), TransportErrorKind::Unknown);
        assert_eq!(kind("SomethingNew", ""), TransportErrorKind::Unknown);
    }

    #[test]
    fn an_expired_handle_is_told_from_another_bad_value() {
        let cause = |message| Failure::said("InvalidParameterValue", Some(message)).cause;
        assert_eq!(
            cause("Value x for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired."),
            Cause::VoidHandle
        );
        assert_eq!(cause("Value x for parameter MessageGroupId is invalid."), Cause::Invalid);
    }

    #[test]
    fn what_is_said_of_a_signature_is_not_repeated() {
        for code in ["SignatureDoesNotMatch", "IncompleteSignature", "InvalidClientTokenId", "ExpiredToken"] {
            let said = Failure::said(code, Some("Credential=AKIDEXAMPLE/20261126, secret hunter2"));
            let error = said.error("connect", "connect").to_string();
            assert!(error.contains(code) && !error.contains("AKID") && !error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn a_sentence_stays_one_line() {
        let said = Failure::said("InternalFailure", Some(&format!("a\nb {}", "x".repeat(1000)))).describe("send");
        assert!(said.starts_with("cannot send: InternalFailure: a b x") && said.len() < 400, "{said}");
    }
}
