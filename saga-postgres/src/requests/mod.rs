//! Requests that take effect once: their transaction, and the responses that are kept.

pub(super) mod admission;
pub(super) mod kept_keys;
pub(super) mod kept_responses;
pub(super) mod keyed_transaction;
pub(super) mod request_statements;
