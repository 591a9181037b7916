//! Running commands: handlers, built-in steps, sub-sagas, and the recording of their attempts.

pub(crate) mod attempt;
pub(crate) mod builtin;
pub(crate) mod external;
pub(crate) mod lease;
pub(crate) mod lock;
pub(crate) mod progress;
pub(crate) mod record;
pub(crate) mod recovery;
pub(crate) mod sub_saga;
pub(crate) mod transaction;
