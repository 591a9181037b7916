//! Messages from an outbox on PostgreSQL to a receiver: how many are sent a second, and how long one takes.

mod counting;
mod outbox;
pub(crate) mod receipt;
pub(crate) mod relay;
mod sent;

pub(crate) use self::outbox::{EVENT, TOPIC, body};
pub(crate) use self::sent::{CALL, subscription, without_outbox};
