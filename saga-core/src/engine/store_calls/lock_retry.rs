//! Retries calls that met a lock in a shared commit: such a call is taken out of the batch and made alone, so that no
//! other call waits with it.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::batcher::Request;
use super::record_error::RecordError;
use crate::engine::lifecycle::{Lifecycle, backoff_after};
use crate::env::Environment;
use crate::log;
use crate::store::StoreError;

/// How often a call that waits for a lock is made again by itself, in some seven seconds, until its caller is told so.
const TRIES_MAX: u32 = 8;

/// How many of those that wait are made at a time: each takes a connection of the store.
const LINES: usize = 2;

/// Calls that met a lock. Nothing of them was done.
#[derive(Debug)]
pub(crate) struct LockConflict<T> {
    pub(crate) group: Vec<T>,
    pub(crate) error: StoreError,
}

/// A call with the answer that its caller waits for.
type Call<T, A> = Request<T, Result<A, RecordError>>;

/// What makes a group of calls in one commit.
type MakeGroup<O, T, A, F> = fn(Arc<O>, Vec<Call<T, A>>) -> F;

/// The calls that are made apart.
#[derive(Clone)]
pub(crate) struct LockRetry {
    lines: Arc<Semaphore>,
    lifecycle: Arc<Lifecycle>,
    env: Arc<dyn Environment>,
}

impl LockRetry {
    pub(crate) fn new(lifecycle: &Arc<Lifecycle>, env: &Arc<dyn Environment>) -> Self {
        Self { lines: Arc::new(Semaphore::new(LINES)), lifecycle: Arc::clone(lifecycle), env: Arc::clone(env) }
    }

    /// Makes the calls of a group, in halves where one of them waits for a lock, until that one is alone.
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
            self.lifecycle.spawn("call apart", Box::pin(task));
        }
    }

    async fn make_alone<O, T, A, F>(&self, owner: &Arc<O>, mut group: Vec<Call<T, A>>, make: MakeGroup<O, T, A, F>)
    where
        F: Future<Output = Result<(), LockConflict<Call<T, A>>>>,
    {
        for tries in 0.. {
            self.env.sleep(backoff_after(tries)).await;
            // It is never closed.
            let Ok(_line) = self.lines.acquire().await else { return };
            let Err(locked) = make(Arc::clone(owner), group).await else { return };
            if tries + 1 >= TRIES_MAX || self.lifecycle.has_stopped() {
                for request in locked.group {
                    request.answer(Err((&locked.error).into()));
                }
                return;
            }
            group = locked.group;
        }
    }
}
