//! What is read of a schedule in the end.

mod branches;
mod finals;
mod log;
mod times;

pub(crate) use self::branches::note_branches;
pub(crate) use self::finals::{finals, is_quiet, plans, unknown_messages};
pub(crate) use self::log::Log;
pub(crate) use self::times::note_times;
