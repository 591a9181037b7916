//! Time, tasks and randomness: the interface between the engine and the machine on which it runs.
//!
//! In production it is [`TokioEnvironment`]. The simulation in `saga-testkit` brings its own, with virtual time and a
//! seeded order of tasks, so that the engine that is tested is the engine that runs.

mod activity;
mod concurrently;
mod during;
mod environment;
mod timeout;
mod tokio;

// What `saga_testkit::VirtualTime` asks for besides time.
#[doc(hidden)]
pub use self::activity::{Activity, ActivityGuard, Pause};
pub(crate) use self::concurrently::concurrently;
#[doc(hidden)]
pub use self::during::during;
pub use self::environment::{BoxFuture, Environment};
pub(crate) use self::timeout::timeout;
pub use self::tokio::TokioEnvironment;
