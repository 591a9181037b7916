//! Steps that another service runs, and steps that are run for another one.

pub(super) mod choreography;
pub(super) mod host_reply;
pub(super) mod host_undo;
pub(super) mod timeline;
