//! Which faults there will be, when, and on whom: a pure function of a seed.

mod fault;
mod retention;
mod timetable;

pub use fault::{CutAt, Disk, Fault, Heal, Role, Server};
pub(crate) use retention::RetentionTimes;
pub(crate) use timetable::MEMBER_SILENCE;
pub use timetable::{Plan, PlannedFault, REPLICAS, Shape};
