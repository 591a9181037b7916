//! Commands that were taken over from a process that vanished.

mod recovery;

pub(crate) use self::recovery::Recovery;
