//! The membership of this process in its store: heartbeats, and whether other processes may recover its work.

mod membership;

pub(crate) use self::membership::Membership;
