//! This process as a member of the store: its heartbeat, and whether it may be taken for dead.

mod membership;

pub(crate) use self::membership::Membership;
