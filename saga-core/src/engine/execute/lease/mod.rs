//! Holds the leases of the commands that run in this process.

mod call_starts;
mod hold_leases;
mod keep_lease;
mod lease_keeper;

pub(crate) use self::lease_keeper::LeaseKeeper;
