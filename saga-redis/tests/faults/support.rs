//! What the tests share.

use std::time::Duration;

use saga_core::Entity;
use saga_redis::{
    AcquireRequest, Acquired, HeldLock, LockError, LockService as _, MemoryEpochs, RedisLocks, RedisOptions,
};
use saga_servers::RedisServer;
use tokio::task::JoinSet;

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

/// Asks for so many accounts at once, and has the answers in the order of their numbers.
pub(crate) async fn acquire_at_once(locks: &RedisLocks, accounts: u32) -> Vec<Result<Acquired, LockError>> {
    let mut asking = JoinSet::new();
    for number in 0..accounts {
        let (locks, entity) = (locks.clone(), Entity::new("account", number));
        let request = AcquireRequest::new([entity], format!("holder-{number}")).lease_ttl(LONG);
        asking.spawn(async move { (number, locks.acquire(&request).await) });
    }
    let mut answers = asking.join_all().await;
    answers.sort_by_key(|(number, _)| *number);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// How many scripts Redis was asked to run.
pub(crate) async fn scripts_run(server: &RedisServer) -> u64 {
    let stats = server.command(&["INFO", "commandstats"]).await.unwrap();
    let of_evalsha = stats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
    of_evalsha.map_or(0, |rest| rest.split(',').next().unwrap().parse().unwrap())
}
