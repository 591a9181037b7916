//! How a message looks in Kafka, and what is written beside one that was given up.

pub(super) mod dead_letter;
pub(super) mod debezium;
pub(super) mod parts;
pub(super) mod record;
pub(super) mod text;
pub(super) mod wire;
