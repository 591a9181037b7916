//! Helpers for calls of the store: retries, batching into few commits, ids, and its clock.

mod backoff;
mod batcher;
mod id_blocks;
mod lock_retry;
mod record_error;
mod store_calls;
mod store_clock;

pub(crate) use self::backoff::catch_panic;
pub(crate) use self::batcher::{Batcher, Request};
pub(crate) use self::lock_retry::{LOCK_RETRIES_MAX, LockConflict, LockRetry, retry_locked};
pub(crate) use self::record_error::{RecordError, store_error};
pub(crate) use self::store_calls::{StoreCalls, or_unreadable};
