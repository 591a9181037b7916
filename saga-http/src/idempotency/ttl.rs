//! How long keys live beside the sagas that their responses name.

use std::time::Duration;

use saga_core::Runtime;
use saga_core::store::{IdempotencyKeys, Status};
use thiserror::Error;

/// How long a key is kept: a day.
pub(super) const TTL: Duration = Duration::from_hours(24);

/// A key would live longer than the saga that its response names: a retry would get the `Location` of a saga that is gone.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "ttl is {ttl:?}, and the keys of sagas of {saga}@{version} are kept for {kept:?} after their ends: make ttl at most \
     {kept:?}, or keep them for at least {ttl:?} with `.retention(..)`"
)]
#[non_exhaustive]
pub struct TtlTooLong {
    /// The time to live that was asked for.
    pub ttl: Duration,
    /// The definition whose sagas are kept for the shortest time.
    pub saga: String,
    /// Its version.
    pub version: u32,
    /// How long the keys of its sagas are kept.
    pub kept: Duration,
}

/// The time to live, if no saga of the runtime may be deleted before that. A saga ends when the request is over, or later.
pub(super) fn checked<S: IdempotencyKeys>(runtime: Option<&Runtime<S>>, ttl: Duration) -> Result<Duration, TtlTooLong> {
    let policies = runtime.map(|runtime| runtime.admin().retention().policies()).unwrap_or_default();
    let kept = policies.into_iter().filter_map(|policy| {
        let retention = policy.retention?;
        let kept = retention.key_for(Status::Completed).min(retention.key_for(Status::Compensated));
        Some(TtlTooLong { ttl, saga: policy.saga, version: policy.version, kept })
    });
    match kept.min_by_key(|policy| policy.kept) {
        Some(shortest) if shortest.kept < ttl => Err(shortest),
        _ => Ok(ttl),
    }
}

/// The time to live where none is asked for: a day, or less if sagas of the runtime are kept for less.
pub(super) fn usual<S: IdempotencyKeys>(runtime: Option<&Runtime<S>>) -> Duration {
    checked(runtime, TTL).unwrap_or_else(|problem| problem.kept)
}
