//! The runtime: it builds the components, runs their tasks, and is the way in for users.

mod builder;
mod control;
mod engine;
mod handle;
mod listener;
mod precompile;
mod publish;
mod publish_event;
mod register;
mod runtime;
mod shutdown;
mod start_saga;
mod starts;
mod stored_values;
mod tasks;

pub use self::builder::RuntimeBuilder;
pub use self::handle::SagaHandle;
pub use self::publish::PublishError;
pub use self::publish_event::{PublishEvent, UncommittedPublish};
pub use self::runtime::Runtime;
pub use self::start_saga::{StartSaga, UncommittedStart};
