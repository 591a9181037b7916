//! How a step fails.

pub(super) mod classify;
pub(super) mod error;
pub(super) mod failure;
pub(super) mod rejection;
pub(super) mod text;
