//! Redis, alone, with a replica, or as a cluster of three.

pub(super) mod redis;
pub(super) mod redis_cluster;
pub(super) mod redis_protocol;
