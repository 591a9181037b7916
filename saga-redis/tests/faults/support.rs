//! What the tests share.

use std::time::Duration;

use saga_core::Entity;
use saga_redis::{
    AcquireRequest, Acquired, HeldLock, LockError, LockService as _, MemoryEpochs, RedisLocks, RedisOptions,
};

/// Long enough that it never ends in a test.
pub(crate) const LONG: Duration = Duration::from_mins(10);

pub(crate) fn account() -> Entity {
    Entity::new("account", 7)
}

pub(crate) fn request(holder: &str) -> AcquireRequest {
    AcquireRequest::new([account()], holder).lease_ttl(LONG).wait_ttl(LONG)
}

pub(crate) fn token(lock: &HeldLock) -> u64 {
    lock.tokens().next().unwrap().1
}

/// Patient, so that a slow machine is no fault.
pub(crate) fn options(url: &str) -> RedisOptions {
    RedisOptions::new(url).response_timeout(Duration::from_mins(1)).connect_timeout(Duration::from_mins(1))
}

pub(crate) async fn connect(options: RedisOptions) -> RedisLocks {
    RedisLocks::connect(options, MemoryEpochs::default()).await.unwrap()
}

pub(crate) async fn granted(locks: &RedisLocks, request: &AcquireRequest) -> HeldLock {
    locks.acquire(request).await.unwrap().granted().expect("it is free")
}

pub(crate) async fn waits(locks: &RedisLocks, request: &AcquireRequest) {
    let answer = locks.acquire(request).await.unwrap();
    assert!(matches!(answer, Acquired::Waits { .. }), "{answer:?}");
}

pub(crate) fn assert_unavailable<T: std::fmt::Debug>(answer: Result<T, LockError>, address: &str) {
    let error = answer.unwrap_err();
    assert!(matches!(error, LockError::Unavailable { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("does not answer") && text.contains(address), "{text}");
}
