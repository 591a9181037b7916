//! A lock that is acquired and released, beside the two scripts that a lock without turns and tokens needs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use redis::Script;
use redis::aio::MultiplexedConnection;
use saga_core::Entity;
use saga_redis::{AcquireRequest, LockService as _, RedisLocks};
use tokio::task::JoinSet;

use crate::clock::Stopwatch;

const TAKE: &str = "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])";
const GIVE_BACK: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end";
const LEASE_MILLIS: u64 = 30_000;

/// Who makes the pairs.
#[derive(Clone)]
pub(super) enum Pairs {
    /// Two bare `EVALSHA`.
    Bare(MultiplexedConnection),
    /// The lock service.
    Locks(RedisLocks),
}

impl Pairs {
    /// Makes so many pairs on entities of their own, so many at once, and says how long that took.
    pub(super) async fn drive(&self, numbers: std::ops::Range<u32>, in_flight: u32) -> Result<Duration> {
        let scripts = Arc::new((Script::new(TAKE), Script::new(GIVE_BACK)));
        let watch = Stopwatch::started();
        let next = Arc::new(AtomicU32::new(numbers.start));
        let mut clients: JoinSet<Result<()>> = JoinSet::new();
        for _ in 0..in_flight {
            let (mut pairs, scripts, next, end) = (self.clone(), Arc::clone(&scripts), Arc::clone(&next), numbers.end);
            clients.spawn(async move {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= end {
                        return Ok(());
                    }
                    pairs.make(&scripts, number).await?;
                }
            });
        }
        while let Some(ended) = clients.join_next().await {
            ended.context("a client panicked")??;
        }
        Ok(watch.elapsed())
    }

    async fn make(&mut self, scripts: &(Script, Script), number: u32) -> Result<()> {
        let holder = format!("order-{number}/charge/1");
        match self {
            Self::Bare(redis) => {
                let key = format!("lock:account:{number}");
                let taken: Option<String> =
                    scripts.0.key(&key).arg(&holder).arg(LEASE_MILLIS).invoke_async(redis).await?;
                taken.context("the lock was not taken")?;
                let _: u32 = scripts.1.key(&key).arg(&holder).invoke_async(redis).await?;
            }
            Self::Locks(locks) => {
                let request = AcquireRequest::new([Entity::new("account", number)], holder);
                let lock = locks.acquire(&request).await?.granted().context("the lock was not granted")?;
                locks.release(&lock).await?;
            }
        }
        Ok(())
    }
}
