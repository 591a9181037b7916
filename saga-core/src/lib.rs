#![doc = include_str!("../README.md")]
#![doc = include_str!("../docs/tutorial.md")]

// The attributes write `::saga_core`; this lets them be used inside the crate as well.
extern crate self as saga_core;

#[doc(hidden)]
pub mod __private;
pub mod authorization;
mod batches;
pub mod choreography;
pub mod engine;
pub mod env;
pub mod key;
mod log;
#[cfg(feature = "unstable-machine")]
pub mod machine;
#[cfg(not(feature = "unstable-machine"))]
#[expect(unreachable_pub, unused_imports, reason = "some of it is public for `unstable-machine` only")]
mod machine;
pub mod memory;
pub mod saga;
pub mod service;
pub mod step;
pub mod store;
pub mod transport;
mod unwind;

pub use engine::{
    BuildError, Outcome, Runtime, RuntimeError, SagaFailure, SagaHandle, SagaStatus, Settings, StartError,
};
pub use key::{Key, Tenant};
pub use machine::StepPhase;
pub use saga::{Migration, Retention, Saga, SagaError, SubSaga, Wait};
pub use service::Service;
pub use step::{
    Batch, BatchResults, Event, IntoStepError, Locked, LockedEntity, OnExhausted, Output, Outputs, Rejection, Resolved,
    RetryPolicy, SemanticLock, Signal, Signaled, State, StepContext, StepError, StepErrorKind, StepResultExt,
};
pub use store::Entity;

#[cfg(feature = "macros")]
pub use saga_macros::{saga_compensation, saga_resolution, saga_step};
