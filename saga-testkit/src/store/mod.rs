//! The checks of a store, by duty.

pub(crate) mod acts;
pub(crate) mod claims;
pub(crate) mod concurrency;
pub(crate) mod definitions;
pub(crate) mod hints;
pub(crate) mod histories;
pub(crate) mod inbox;
pub(crate) mod lanes;
pub(crate) mod leases;
pub(crate) mod letters;
pub(crate) mod limits;
pub(crate) mod listing;
pub(crate) mod members;
pub(crate) mod misses;
pub(crate) mod outbox;
pub(crate) mod publish_in;
pub(crate) mod records;
pub(crate) mod recovery;
pub(crate) mod reports;
pub(crate) mod running_on;
pub(crate) mod sagas;
pub(crate) mod start_in;
pub(crate) mod starting;
pub(crate) mod together;
pub(crate) mod transaction;
pub(crate) mod unknown;
