//! Claims unleased work from the store.

mod deadline;
mod lost_claim;
mod paused;
mod poller;

pub(crate) use self::poller::Poller;
