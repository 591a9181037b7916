//! Sagas for ordinary async functions.

// The attributes write `::saga_core`; this lets them be used inside the crate as well.
extern crate self as saga_core;

#[doc(hidden)]
pub mod __private;
pub mod env;
pub mod key;
pub mod machine;
pub mod memory;
pub mod saga;
pub mod step;
pub mod store;
pub mod transport;

pub use saga::Saga;
pub use step::{
    CancelSignal, Classify, Event, Failure, Output, Rejection, RetryPolicy, State, StepContext, StepError,
    StepErrorKind, StepOptions,
};
