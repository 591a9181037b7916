//! Builds and validates the messages between services. The outbox sends them, and the inbox receives them.

mod carried_locks;
mod check_value;
mod closed;
mod command;
mod event;
mod event_routes;
mod fingerprint;
mod handle_error;
mod host_request;
mod inbound;
mod messages;
mod progress_content;
mod progress_fact;
mod reply;
mod request_hash;
mod step_reference;
mod timeline_key;
mod validator;

pub(crate) use self::carried_locks::{carried_locks, missing_lock};
pub(crate) use self::check_value::check_value;
pub(crate) use self::closed::{AskedSaga, CLOSED_MAX, Closed, closed_content};
pub(crate) use self::command::UndoContent;
pub(crate) use self::event_routes::{event_id_of, for_service, saga_key_of};
pub(crate) use self::fingerprint::fingerprint_of;
pub(crate) use self::handle_error::HandleError;
pub(crate) use self::host_request::{HostRequest, MappedEvent};
pub(crate) use self::inbound::{InboundMessage, age};
pub(crate) use self::messages::Messages;
pub(crate) use self::progress_content::{Content, content};
pub(crate) use self::reply::reason_bytes;
pub(crate) use self::request_hash::{first_difference, request_hash};
pub(crate) use self::step_reference::step_or_item;
pub(crate) use self::timeline_key::{TIMELINES, timeline_key};
pub(crate) use self::validator::Validator;
