//! What becomes of calls that share a commit when one of them waits for a lock: it is taken out of the group and made again
//! by itself, so that nobody else waits with it.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::asking::backoff_after;
use super::grouped::Request;
use super::recorder::RecordError;
use super::shared::EngineContext;
use crate::log;
use crate::store::{Store, StoreError};

/// How often a call that waits for a lock is made again by itself, in some seven seconds, until its caller is told so.
const TRIES_MAX: u32 = 8;
/// How many of those that wait are made at a time: each takes a connection of the store.
const LINES: usize = 2;

/// Calls that met a lock. Nothing of them was done.
#[derive(Debug)]
pub(super) struct LockConflict<T> {
    pub(super) group: Vec<T>,
    pub(super) error: StoreError,
}

/// A call with the answer that its caller waits for.
type Call<T, A> = Request<T, Result<A, RecordError>>;

/// What makes a group of calls in one commit.
type MakeGroup<S, T, A, F> = fn(Arc<EngineContext<S>>, Vec<Call<T, A>>) -> F;

/// The calls that are made apart.
#[derive(Debug, Clone)]
pub(super) struct LockRetry {
    lines: Arc<Semaphore>,
}

impl LockRetry {
    pub(super) fn new() -> Self {
        Self { lines: Arc::new(Semaphore::new(LINES)) }
    }

    /// Makes the calls of a group, in halves where one of them waits for a lock, until that one is alone.
    pub(super) async fn make<S, T, A, F>(
        &self,
        shared: &Arc<EngineContext<S>>,
        group: Vec<Call<T, A>>,
        make: MakeGroup<S, T, A, F>,
    ) where
        S: Store,
        T: Send + 'static,
        A: Send + 'static,
        F: Future<Output = Result<(), LockConflict<Call<T, A>>>> + Send + 'static,
    {
        let mut waiting = vec![group];
        while let Some(group) = waiting.pop() {
            let Err(LockConflict { mut group, error }) = make(Arc::clone(shared), group).await else { continue };
            if group.len() > 1 {
                let second = group.split_off(group.len() / 2);
                waiting.extend([second, group]);
                continue;
            }
            log::debug!(%error, "a call waits for a lock; the others go on");
            let (lines, shared) = (Arc::clone(&self.lines), Arc::clone(shared));
            let (runner, under_way) = (Arc::clone(&shared), shared.tasks.enter());
            let task = async move {
                make_alone(&lines, &shared, group, make).await;
                drop(under_way);
            };
            runner.spawn("call apart", Box::pin(task));
        }
    }
}

async fn make_alone<S, T, A, F>(
    lines: &Semaphore,
    shared: &Arc<EngineContext<S>>,
    mut group: Vec<Call<T, A>>,
    make: MakeGroup<S, T, A, F>,
) where
    S: Store,
    F: Future<Output = Result<(), LockConflict<Call<T, A>>>>,
{
    for tries in 0.. {
        shared.env.sleep(backoff_after(tries)).await;
        // It is never closed.
        let Ok(_line) = lines.acquire().await else { return };
        let Err(locked) = make(Arc::clone(shared), group).await else { return };
        if tries + 1 >= TRIES_MAX || shared.has_stopped() {
            for request in locked.group {
                request.answer(Err((&locked.error).into()));
            }
            return;
        }
        group = locked.group;
    }
}
