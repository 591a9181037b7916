use std::convert::Infallible;

use crate::step::StepError;

/// An error type that a step can return: it decides for each case whether the step is rejected or retried.
///
/// # Examples
///
/// ```
/// use saga_core::step::{IntoStepError, StepError};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Debug, thiserror::Error, Serialize, Deserialize)]
/// enum ShopError {
///     #[error("only {left} left")]
///     OutOfStock { left: u32 },
///     #[error("the warehouse is busy")]
///     Busy,
/// }
///
/// impl IntoStepError for ShopError {
///     fn into_step_error(self) -> StepError {
///         match self {
///             Self::OutOfStock { .. } => StepError::reject_with(self),
///             Self::Busy => StepError::retry(self),
///         }
///     }
/// }
/// ```
///
/// In a step that returns [`StepError`] itself, `?` does not use this trait, and the step is retried. Return the error type
/// from the step, or write `.map_err(IntoStepError::into_step_error)?`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say which of its cases reject the saga and which are tried again",
    label = "not an error that a step can return",
    note = "implement `saga_core::IntoStepError` for it, or return `StepError`, to which `?` converts every `std::error::Error`",
    note = "an error of another crate, such as `anyhow::Error`: return `Result<.., StepError>`, and write `.or_retry()?` or `.or_reject()?` (`use saga_core::StepResultExt`)"
)]
pub trait IntoStepError {
    /// Classifies the error.
    fn into_step_error(self) -> StepError;
}

impl IntoStepError for StepError {
    fn into_step_error(self) -> StepError {
        self
    }
}

impl IntoStepError for Infallible {
    fn into_step_error(self) -> StepError {
        match self {}
    }
}

/// What a step returned, with its error classified.
#[doc(hidden)]
pub fn finish<T, E: IntoStepError>(result: Result<T, E>) -> Result<T, StepError> {
    result.map_err(IntoStepError::into_step_error)
}

/// The return type of a step, where it is an alias that only the compiler can see through.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a step returns `Result<T, StepError>`, and `{Self}` is none",
    label = "not an alias of `Result`",
    note = "a type whose name ends in `Result` is taken for an alias of it"
)]
pub trait StepReturn {
    /// What the step gives when it succeeds.
    type Value;
    /// What it gives when it does not.
    type Error;

    /// The `Result` that the alias stands for.
    fn into_result(self) -> Result<Self::Value, Self::Error>;
}

#[diagnostic::do_not_recommend]
impl<T, E> StepReturn for Result<T, E> {
    type Value = T;
    type Error = E;

    fn into_result(self) -> Self {
        self
    }
}

/// What a step returned through an alias, with its error classified.
#[doc(hidden)]
pub fn finish_alias<R: StepReturn<Error: IntoStepError>>(returned: R) -> Result<R::Value, StepError> {
    finish(returned.into_result())
}
