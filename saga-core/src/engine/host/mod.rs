//! Steps that this service does for the sagas of other services.

mod host;

pub(crate) use self::host::Host;
