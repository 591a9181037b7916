//! The contract of a transport, which carries messages to other services.
//!
//! # Cancel safety
//! Dropping a `publish` leaves each of its messages sent or not sent; the relay sends them again under the same ids.
//! Dropping a `receive` loses nothing: unsettled messages are delivered again.

mod interface;
mod message;
mod shared;

pub use self::interface::{
    DeadLetterInfo, Delivery, Incoming, Settlement, Subscription, Transport, TransportError, TransportErrorKind,
};
pub use self::message::Unreadable;
pub use crate::store::{Answer, Headers, Message, MessageKind, service_topic};
