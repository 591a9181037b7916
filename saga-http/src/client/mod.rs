//! Calls of other services with the key of a step, and what their answers mean for the step.

mod for_step;
#[cfg(feature = "middleware")]
mod middleware;
mod request;
mod retry_after;

pub use self::for_step::ForStep;
pub use self::request::StepRequest;
