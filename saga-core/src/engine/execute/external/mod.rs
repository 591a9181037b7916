//! Steps that call the outside world.

mod call;
mod resolve;
mod worker;

pub(crate) use self::worker::ExternalCalls;
