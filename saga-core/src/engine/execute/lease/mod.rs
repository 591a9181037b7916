//! Leases of the commands that run here.

mod call_starts;
mod hold;
mod keep;
mod lease_keeper;

pub(crate) use self::lease_keeper::LeaseKeeper;
