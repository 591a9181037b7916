use std::error::Error;

use super::StepError;

/// Says for one call what its error means, where `?` alone would try again.
///
/// It is also the way in for `anyhow::Error` and for boxed errors, which `?` cannot take.
///
/// # Examples
///
/// ```
/// use saga_core::step::{StepResultExt, StepError};
///
/// fn quantity(text: &str) -> Result<u32, StepError> {
///     let quantity = text.parse().or_reject()?; // it will never parse: undo the saga
///     Ok(quantity)
/// }
///
/// assert!(quantity("three").unwrap_err().rejection().is_some());
/// ```
pub trait StepResultExt<T> {
    /// An error of this call is a business failure: the saga compensates.
    ///
    /// A statement that met the lock of another transaction, or a deadlock with one, says nothing about the business: in a
    /// step transaction such an error is tried again, whatever it was classified as.
    ///
    /// # Errors
    ///
    /// The error as a rejection with its message.
    fn or_reject(self) -> Result<T, StepError>;

    /// An error of this call is transient: the step is tried again.
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
