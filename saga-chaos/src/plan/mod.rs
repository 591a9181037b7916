//! Which faults there will be, when, and on whom: a pure function of a seed.

mod fault;
mod timetable;

pub use fault::{CutAt, Fault, Role, Server};
pub use timetable::{Blow, Plan, REPLICAS, Shape};
