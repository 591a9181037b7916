//! The runtime: it builds the components, runs their tasks, and is the way in for users.

mod builder;
mod control;
mod engine;
mod handle;
mod listener;
mod migrate;
mod publish;
mod register;
mod runtime;
mod shutdown;
mod starts;
mod tasks;

pub use self::builder::RuntimeBuilder;
pub use self::handle::SagaHandle;
pub use self::migrate::MigrationReport;
pub use self::publish::{PublishError, UncommittedPublish};
pub use self::runtime::Runtime;
pub use self::starts::UncommittedStart;
