//! The transport: queues by the name of the subscription.

pub(super) mod transport;
pub(super) mod transport_queue;
