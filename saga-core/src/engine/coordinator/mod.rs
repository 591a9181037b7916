//! The coordinator: has steps of the sagas of this service done by other services.

mod closed;
mod coordinator;
mod progress;
mod reply;
mod resend;
mod saga_locks;

pub(crate) use self::coordinator::Coordinator;
