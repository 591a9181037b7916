//! Steps that other services do for the sagas of this one.

mod coordinator;
mod progress;
mod reply;
mod resend;
mod saga_locks;

pub(crate) use self::coordinator::Coordinator;
