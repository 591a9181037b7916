use std::{error::Error, fmt, time::Duration};

use serde::Serialize;

use crate::step::Rejection;

type Source = Box<dyn Error + Send + Sync>;

/// The error of a step, which decides how the saga continues.
///
/// The `?` operator converts every [`std::error::Error`] to a transient `StepError`: the step is retried. Return a business
/// failure with [`reject`](Self::reject) or [`reject_with`](Self::reject_with): the saga compensates.
///
/// `StepError` does not implement `std::error::Error`, because otherwise `?` could not convert all errors.
///
/// # Examples
///
/// ```
/// use saga_core::step::{StepError, StepErrorKind};
///
/// fn price(text: &str) -> Result<u64, StepError> {
///     let price: u64 = text.parse()?; // retried
///     if price == 0 {
///         return Err(StepError::reject("nothing to pay")); // compensates the saga
///     }
///     Ok(price)
/// }
///
/// assert_eq!(price("x").unwrap_err().kind(), StepErrorKind::Transient);
/// assert_eq!(price("0").unwrap_err().kind(), StepErrorKind::Rejected);
/// ```
pub struct StepError {
    repr: Repr,
}

/// What an error of a step means for its saga.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StepErrorKind {
    /// A definite business failure: it is recorded, and the saga compensates.
    Rejected,
    /// The step is retried. An external step may have taken effect.
    Transient,
    /// The step is retried, and this attempt certainly had no external effect.
    NotSent,
    /// Retrying does not help: the saga is stuck until an operator acts. An external step may have taken effect.
    Stuck,
    /// The runtime could not make the parameters of the step, for example because stored data cannot be read. The
    /// function was not called, and the saga is stuck.
    Unreadable,
}

enum Repr {
    /// With the error that was made a rejection, where there was one.
    Rejected(Rejection, Option<Source>),
    /// With the shortest pause before the next attempt.
    Transient(Source, Duration),
    NotSent(Source),
    Stuck(String),
    Unreadable(String),
}

impl StepError {
    /// A business failure: it is recorded with this reason, and the saga compensates.
    pub fn reject(reason: impl fmt::Display) -> Self {
        Self { repr: Repr::Rejected(Rejection::new(reason), None) }
    }

    /// A business failure with the user's own error, which [`Rejection::details`] returns.
    ///
    /// If serializing the error fails or gives more than 64 KiB of JSON, only its message is recorded.
    pub fn reject_with(error: impl fmt::Display + Serialize) -> Self {
        Self { repr: Repr::Rejected(Rejection::with_details(&error), None) }
    }

    /// A business failure, unless what is behind the error has nothing to do with the business.
    pub(in crate::step) fn reject_source(error: Source) -> Self {
        Self { repr: Repr::Rejected(Rejection::new(&error), Some(error)) }
    }

    /// A transient failure: the step is retried by its retry policy.
    pub fn retry(error: impl Into<Source>) -> Self {
        Self::retry_after(Duration::ZERO, error)
    }

    /// A transient failure of a service that says when to try again, for example with the header `Retry-After`: the next
    /// attempt begins no sooner than after `delay`, even if the retry policy has a shorter pause.
    pub fn retry_after(delay: Duration, error: impl Into<Source>) -> Self {
        Self { repr: Repr::Transient(error.into(), delay) }
    }

    /// A transient failure of an attempt that certainly had no external effect: a refused connection, or a request that was
    /// never sent.
    pub fn not_sent(error: impl Into<Source>) -> Self {
        Self { repr: Repr::NotSent(error.into()) }
    }

    /// A failure that only an operator can mend, for example of credentials that are wrong: the step is not retried, nothing is
    /// compensated, and the saga is stuck with this reason until an operator retries the step, skips it or compensates the saga.
    pub fn stuck(reason: impl Into<String>) -> Self {
        Self { repr: Repr::Stuck(reason.into()) }
    }

    /// The function was not called, since its parameters cannot be made.
    pub(crate) fn unreadable(reason: impl Into<String>) -> Self {
        Self { repr: Repr::Unreadable(reason.into()) }
    }

    /// The shortest pause before the next attempt, as [`retry_after`](Self::retry_after) set it.
    pub fn delay_min(&self) -> Duration {
        match self.repr {
            Repr::Transient(_, delay) => delay,
            _ => Duration::ZERO,
        }
    }

    /// What the error means for the saga.
    pub fn kind(&self) -> StepErrorKind {
        match self.repr {
            Repr::Rejected(..) => StepErrorKind::Rejected,
            Repr::Transient(..) => StepErrorKind::Transient,
            Repr::NotSent(_) => StepErrorKind::NotSent,
            Repr::Stuck(_) => StepErrorKind::Stuck,
            Repr::Unreadable(_) => StepErrorKind::Unreadable,
        }
    }

    /// The recorded reason, if this is a rejection.
    pub fn rejection(&self) -> Option<&Rejection> {
        match &self.repr {
            Repr::Rejected(rejection, _) => Some(rejection),
            _ => None,
        }
    }

    /// The recorded reason, if this is a rejection; otherwise the error itself.
    ///
    /// # Errors
    ///
    /// The unchanged error, if it is of another kind.
    pub(crate) fn into_rejection(self) -> Result<Rejection, Self> {
        match self.repr {
            Repr::Rejected(rejection, _) => Ok(rejection),
            repr => Err(Self { repr }),
        }
    }

    /// The source of a transient error.
    pub fn source(&self) -> Option<&(dyn Error + Send + Sync + 'static)> {
        match &self.repr {
            Repr::Transient(source, _) | Repr::NotSent(source) => Some(source.as_ref()),
            Repr::Rejected(..) | Repr::Stuck(_) | Repr::Unreadable(_) => None,
        }
    }

    /// The error behind it, whatever it was made into.
    pub(crate) fn cause(&self) -> Option<&(dyn Error + Send + Sync + 'static)> {
        match &self.repr {
            Repr::Transient(source, _) | Repr::NotSent(source) | Repr::Rejected(_, Some(source)) => {
                Some(source.as_ref())
            }
            Repr::Rejected(_, None) | Repr::Stuck(_) | Repr::Unreadable(_) => None,
        }
    }
}

/// An error that `?` converts to a [`StepError`]: every [`std::error::Error`] is one.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no `std::error::Error`, so `?` does not make a `StepError` of it",
    label = "`{Self}` is no `std::error::Error`: write `.or_retry()?` to try the step again, or `.or_reject()?` to compensate the saga, with `use saga_core::StepResultExt`"
)]
pub trait IntoTransient: Into<Source> {}

#[diagnostic::do_not_recommend]
impl<E: Error + Send + Sync + 'static> IntoTransient for E {}

/// For every [`std::error::Error`]: the step is retried.
impl<E: IntoTransient> From<E> for StepError {
    fn from(error: E) -> Self {
        Self::retry(error)
    }
}

/// One line: the message, then those of the errors behind it.
impl fmt::Display for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.repr {
            Repr::Rejected(rejection, _) => f.write_str(rejection.message()),
            Repr::Stuck(reason) | Repr::Unreadable(reason) => f.write_str(reason),
            Repr::Transient(source, _) | Repr::NotSent(source) => {
                write!(f, "{source}")?;
                let mut behind = source.source();
                while let Some(error) = behind {
                    write!(f, ": {error}")?;
                    behind = error.source();
                }
                Ok(())
            }
        }
    }
}

impl fmt::Debug for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("StepError");
        debug.field("kind", &self.kind());
        match &self.repr {
            Repr::Rejected(rejection, _) => debug.field("rejection", rejection),
            Repr::Transient(source, _) | Repr::NotSent(source) => debug.field("source", source),
            Repr::Stuck(reason) | Repr::Unreadable(reason) => debug.field("reason", reason),
        };
        debug.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the warehouse does not answer")]
    struct Warehouse(#[source] std::num::ParseIntError);

    fn warehouse() -> Result<u64, Warehouse> {
        "x".parse().map_err(Warehouse)
    }

    #[test]
    fn an_unclassified_error_is_tried_again() {
        let step = || -> Result<u64, StepError> { Ok(warehouse()?) };
        let error = step().unwrap_err();
        assert_eq!(error.kind(), StepErrorKind::Transient);
        assert_eq!(error.to_string(), "the warehouse does not answer: invalid digit found in string");
        assert!(matches!(error.source(), Some(source) if source.is::<Warehouse>()));
    }

    #[test]
    fn each_constructor_makes_its_kind() {
        let check = |error: StepError, kind, text: &str| {
            assert_eq!((error.kind(), error.to_string()), (kind, text.to_owned()));
            assert_eq!(error.rejection().is_some(), kind == StepErrorKind::Rejected);
            assert_eq!(error.into_rejection().is_ok(), kind == StepErrorKind::Rejected);
        };
        check(StepError::reject("sold out"), StepErrorKind::Rejected, "sold out");
        check(StepError::reject_with("sold out"), StepErrorKind::Rejected, "sold out");
        check(StepError::retry("busy"), StepErrorKind::Transient, "busy");
        check(StepError::not_sent("refused"), StepErrorKind::NotSent, "refused");
        check(StepError::stuck("wrong password"), StepErrorKind::Stuck, "wrong password");
        check(StepError::unreadable("no text"), StepErrorKind::Unreadable, "no text");
        let delay = Duration::from_secs(7);
        assert_eq!(StepError::retry_after(delay, "busy").delay_min(), delay);
        check(StepError::retry_after(delay, "busy"), StepErrorKind::Transient, "busy");
    }

    #[test]
    fn debug_shows_the_kind_and_the_cause() {
        assert_eq!(format!("{:?}", StepError::retry("busy")), "StepError { kind: Transient, source: \"busy\" }");
    }
}
