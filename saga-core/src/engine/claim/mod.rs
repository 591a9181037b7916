//! Claiming work that no process has.

mod deadline;
mod paused;
mod poller;

pub(crate) use self::poller::Poller;
