//! Publishing: the producer, and the partition of each record.

pub(super) mod partitioner;
pub(super) mod producer;
pub(super) mod publisher;
pub(super) mod spread;
