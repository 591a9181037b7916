//! Why a call of the lock service failed.

use std::error::Error;
use std::time::Duration;

use saga_core::Entity;

/// Why a call of the lock service failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Redis does not answer, or cannot serve at the moment.
    #[error(
        "cannot {operation}: Redis at {address} does not answer, and it may have taken effect; repeat it, or withdraw the \
         request: {source}"
    )]
    Unavailable {
        /// What was to be done.
        operation: &'static str,
        /// The servers, without user and password.
        address: String,
        /// What went wrong.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Fewer replicas than [`RedisOptions::replicas`](crate::RedisOptions::replicas) wants confirmed in time. It does not count
    /// as done: repeat it, or withdraw the request.
    #[error(
        "cannot {operation}: {confirmed} of {wanted} replicas confirmed it in time, so a failover could lose it; repeat it, or \
         withdraw the request"
    )]
    Unconfirmed {
        /// What was to be done.
        operation: &'static str,
        /// How many replicas confirmed.
        confirmed: u32,
        /// How many were to confirm.
        wanted: u32,
    },
    /// The holder does not have the entity any more: its lease ended, it was released, or Redis lost it. Stop the work.
    #[error(
        "{holder} does not have {entity} any more: its lease ended, or Redis lost it; stop the work and release the lock"
    )]
    Lost {
        /// The entity.
        entity: Entity,
        /// The holder.
        holder: String,
    },
    /// The request was not granted within the limit, and was withdrawn.
    #[error("waited {limit:?} for {}, and withdrew the request", .entity.as_ref().map_or_else(|| "the lock".to_owned(), ToString::to_string))]
    TimedOut {
        /// The entity that it waited for, if there was an answer.
        entity: Option<Entity>,
        /// The limit.
        limit: Duration,
    },
    /// The epoch could not be read or raised, so no token could be made.
    #[error("cannot {operation}: the store of the epochs does not answer; repeat it: {source}")]
    Epochs {
        /// What was to be done.
        operation: &'static str,
        /// What went wrong.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Redis refuses. Nothing was changed.
    #[error("cannot {operation}: Redis at {address} refuses: {reason}")]
    Refused {
        /// What was to be done.
        operation: &'static str,
        /// The servers, without user and password.
        address: String,
        /// What it says, and what to do.
        reason: String,
    },
    /// The request or an option is not legal.
    #[error("the request for a lock cannot be served: {0}")]
    Invalid(String),
}
