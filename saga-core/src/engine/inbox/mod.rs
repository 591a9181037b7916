//! Receiving messages.

mod dispatch;
mod fast_path;
mod inbox;

pub(crate) use self::inbox::{InboundSource, Inbox};
