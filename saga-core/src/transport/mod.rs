//! The contract of a transport: what carries messages to others.
//!
//! # Cancel safety
//! Dropping a `publish` leaves each of its messages sent or not sent; they are sent again under the same ids. Dropping a
//! `receive` loses nothing: what was not settled is delivered again.

mod interface;
mod message;

pub use self::interface::{
    DeadLetterInfo, Delivery, Incoming, Settlement, Subscription, Transport, TransportError, TransportErrorKind,
};
pub use self::message::Unreadable;
pub use crate::store::{Answer, Headers, Message, MessageKind, service_topic};
