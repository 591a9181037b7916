//! The host: runs steps for the sagas of other services.

mod closed;
mod host;

pub(crate) use self::host::Host;
