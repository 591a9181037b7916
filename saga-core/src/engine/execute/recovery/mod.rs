//! Recovery of commands whose owner died.

mod recovery;

pub(crate) use self::recovery::Recovery;
