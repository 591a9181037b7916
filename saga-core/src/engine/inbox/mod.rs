//! The inbox: receives messages, and hands each to the component that handles it.

mod dispatch;
mod fast_path;
mod inbox;

pub(crate) use self::inbox::{InboundSource, Inbox};
