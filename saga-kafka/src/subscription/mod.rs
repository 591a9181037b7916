//! A subscription in this process: it reads records, hands them out, and commits what was settled.

pub(super) mod commits;
pub(super) mod group;
pub(super) mod mark;
pub(super) mod partition;
pub(super) mod places;
pub(super) mod poller;
pub(super) mod queues;
pub(super) mod rebalance;
pub(super) mod receiver;
pub(super) mod state;
pub(super) mod watchdog;
