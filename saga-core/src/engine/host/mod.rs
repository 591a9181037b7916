//! The host: runs steps for the sagas of other services.

mod host;

pub(crate) use self::host::Host;
