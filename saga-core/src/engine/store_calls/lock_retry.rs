//! Retries calls that met a lock. Such a call had no effect. In a shared commit it is taken out of its batch and made alone, so that
//! the others do not wait with it.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::batcher::Request;
use super::record_error::RecordError;
use crate::engine::lifecycle::{Lifecycle, backoff_after};
use crate::env::Environment;
use crate::log;
use crate::store::{StoreError, StoreErrorKind};

/// How often a call that met a lock is made again, within about seven seconds, before it fails.
pub(crate) const LOCK_RETRIES_MAX: u32 = 8;

/// How many calls of shared commits are made alone concurrently: each takes a connection of the store.
const CONCURRENT_MAX: usize = 2;

/// Makes a call of the store; again, with pauses and at most so often, where it meets a lock.
pub(crate) async fn retry_locked<T, F>(
    env: &dyn Environment,
    retries_max: u32,
    mut call: impl FnMut() -> F,
) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    for retries in 0..retries_max {
        match call().await {
            Err(error) if error.kind() == StoreErrorKind::Conflict => env.sleep(backoff_after(retries)).await,
            answer => return answer,
        }
    }
    call().await
}

/// Calls whose commit met a lock. None of them had an effect.
#[derive(Debug)]
pub(crate) struct LockConflict<T> {
    pub(crate) group: Vec<T>,
    pub(crate) error: StoreError,
}

/// A call, and the channel for its answer.
type Call<T, A> = Request<T, Result<A, RecordError>>;

/// A function that makes a group of calls in one commit.
type MakeGroup<O, T, A, F> = fn(Arc<O>, Vec<Call<T, A>>) -> F;

/// Makes calls alone after a lock conflict.
#[derive(Clone)]
pub(crate) struct LockRetry {
    permits: Arc<Semaphore>,
    lifecycle: Arc<Lifecycle>,
    env: Arc<dyn Environment>,
}

impl LockRetry {
    pub(crate) fn new(lifecycle: &Arc<Lifecycle>, env: &Arc<dyn Environment>) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(CONCURRENT_MAX)),
            lifecycle: Arc::clone(lifecycle),
            env: Arc::clone(env),
        }
    }

    /// Makes the calls of a group. After a lock conflict it makes them in halves, until the call that waits is alone.
    pub(crate) async fn make<O, T, A, F>(&self, owner: &Arc<O>, group: Vec<Call<T, A>>, make: MakeGroup<O, T, A, F>)
    where
        O: Send + Sync + 'static,
        T: Send + 'static,
        A: Send + 'static,
        F: Future<Output = Result<(), LockConflict<Call<T, A>>>> + Send + 'static,
    {
        let mut waiting = vec![group];
        while let Some(group) = waiting.pop() {
            let Err(LockConflict { mut group, error }) = make(Arc::clone(owner), group).await else { continue };
            if group.len() > 1 {
                let second = group.split_off(group.len() / 2);
                waiting.extend([second, group]);
                continue;
            }
            log::debug!(%error, "store call waits for a lock");
            let (retry, owner, under_way) = (self.clone(), Arc::clone(owner), self.lifecycle.enter());
            let task = async move {
                retry.make_alone(&owner, group, make).await;
                drop(under_way);
            };
            self.lifecycle.spawn("retry a locked call", Box::pin(task));
        }
    }

    async fn make_alone<O, T, A, F>(&self, owner: &Arc<O>, mut group: Vec<Call<T, A>>, make: MakeGroup<O, T, A, F>)
    where
        F: Future<Output = Result<(), LockConflict<Call<T, A>>>>,
    {
        for tries in 0.. {
            self.env.sleep(backoff_after(tries)).await;
            // The semaphore is never closed.
            let Ok(_permit) = self.permits.acquire().await else { return };
            let Err(locked) = make(Arc::clone(owner), group).await else { return };
            if tries + 1 >= LOCK_RETRIES_MAX || self.lifecycle.has_stopped() {
                for request in locked.group {
                    request.answer(Err((&locked.error).into()));
                }
                return;
            }
            group = locked.group;
        }
    }
}
