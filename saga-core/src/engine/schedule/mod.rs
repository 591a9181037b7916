//! The scheduler: keeps leased commands, and their leases, until a worker of this process takes them.

mod dispatch;
mod inline_steps;
mod lease_renewal;
mod scheduler;

pub(crate) use self::dispatch::Dispatch;
pub(crate) use self::inline_steps::InlineSteps;
pub(crate) use self::scheduler::{Placement, Scheduler, take_with_permit};
