//! Waiting for changes of one saga.

use std::fmt;
use std::sync::Arc;

use crate::engine::commit::Committer;
use crate::engine::context::{EngineContext, RuntimeError, outside_step};
use crate::engine::outcome::OutcomeSlot;
use crate::env::{Activity, during};
use crate::store::{SagaId, Store};

/// Waits for changes of one saga: [`SagaQuery::moves`](crate::engine::admin::SagaQuery::moves) returns it.
///
/// A change that this process commits is told at once. For those of other processes the runtime polls the store, for all
/// callers together, as it does for [`SagaHandle::outcome`](crate::SagaHandle::outcome).
pub struct SagaMoves<S: Store> {
    ctx: Arc<EngineContext<S>>,
    slot: Arc<OutcomeSlot>,
    saga: SagaId,
    told: u64,
}

impl<S: Store> SagaMoves<S> {
    pub(in crate::engine::admin) fn new(committer: &Committer<S>, saga: SagaId) -> Self {
        let slot = committer.waiters.slot(saga);
        Self { ctx: Arc::clone(&committer.ctx), told: slot.moves(), slot, saga }
    }

    /// Waits until this process learns of a change that was committed after the last call, or after this was made. Read the
    /// status again then; it may return without a change.
    ///
    /// # Errors
    /// When the runtime ends.
    ///
    /// # Cancel safety
    /// Nothing is lost when it is dropped.
    ///
    /// # Examples
    /// ```
    /// # use saga_core::memory::MemoryStore;
    /// # use saga_core::{Runtime, Saga, StepError, saga_step};
    /// # #[saga_step(no_compensation)]
    /// # async fn greet(_name: String) -> Result<(), StepError> { Ok(()) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let greeting = Saga::named("greeting").input::<String>().step::<greet>().build()?;
    /// # let runtime = Runtime::builder(MemoryStore::new()).saga(&greeting).start().await?;
    /// let handle = runtime.start(&greeting, "guest-1", "Ada".to_owned()).await?;
    /// let query = runtime.admin().query();
    /// let mut moves = query.moves(handle.id()).expect("there is a runtime");
    /// while !query.status("guest-1").await?.is_some_and(|saga| saga.summary.status.is_ended()) {
    ///     moves.next().await?;
    /// }
    /// # runtime.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn next(&mut self) -> Result<(), RuntimeError> {
        outside_step()?;
        let env = &*self.ctx.env;
        let has_moved = during(env, Activity::Waiting, async {
            tokio::select! {
                biased;
                () = self.slot.moved_since(self.told) => true,
                () = self.ctx.lifecycle.stopped.cancelled() => false,
            }
        });
        if !has_moved.await {
            return Err(RuntimeError::Ended);
        }
        self.told = self.slot.moves();
        Ok(())
    }
}

impl<S: Store> fmt::Debug for SagaMoves<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SagaMoves").field("saga", &self.saga).finish_non_exhaustive()
    }
}
