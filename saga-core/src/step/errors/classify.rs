use std::error::Error;

use crate::step::StepError;

/// Classifies the error of one call, where `?` alone would retry the step.
///
/// It also converts `anyhow::Error` and boxed errors, which `?` cannot convert.
///
/// # Examples
///
/// ```
/// use saga_core::step::{StepResultExt, StepError};
///
/// fn quantity(text: &str) -> Result<u32, StepError> {
///     let quantity = text.parse().or_reject()?; // it will never parse: compensate the saga
///     Ok(quantity)
/// }
///
/// assert!(quantity("three").unwrap_err().rejection().is_some());
/// ```
pub trait StepResultExt<T> {
    /// Makes an error of this call a business failure: the saga compensates.
    ///
    /// In a step transaction, a lock time-out and a deadlock are retried all the same, because they are not business
    /// failures.
    ///
    /// # Errors
    ///
    /// The error as a rejection with its message.
    fn or_reject(self) -> Result<T, StepError>;

    /// Makes an error of this call transient: the step is retried.
    ///
    /// # Errors
    ///
    /// The error as a transient one.
    fn or_retry(self) -> Result<T, StepError>;
}

impl<T, E: Into<Box<dyn Error + Send + Sync>>> StepResultExt<T> for Result<T, E> {
    fn or_reject(self) -> Result<T, StepError> {
        self.map_err(|error| StepError::reject_source(error.into()))
    }

    fn or_retry(self) -> Result<T, StepError> {
        self.map_err(StepError::retry)
    }
}
