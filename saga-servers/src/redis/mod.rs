//! Redis, alone, with a replica, or as a cluster of three.

pub(super) mod redis;
mod redis_clock;
pub(super) mod redis_cluster;
pub(super) mod redis_protocol;
