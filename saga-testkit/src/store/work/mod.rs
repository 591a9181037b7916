//! Work: claims, leases, the members that hold them, and what becomes of the work of those that vanished.

pub(crate) mod begun;
pub(crate) mod claims;
pub(crate) mod leases;
pub(crate) mod members;
pub(crate) mod recovery;
pub(crate) mod reports;
pub(crate) mod shares;
pub(crate) mod whole_shares;
