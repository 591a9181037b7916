//! Which faults there will be, when, and on whom: a pure function of a seed.

mod dead_letters;
mod fault;
mod retention;
mod timetable;

pub(crate) use dead_letters::PlannedLetter;
pub use fault::{CutAt, Disk, Fault, Heal, Role, Server};
pub(crate) use retention::RetentionTimes;
pub(crate) use timetable::MEMBER_SILENCE;
pub use timetable::{Plan, PlannedFault, REPLICAS, Shape};
