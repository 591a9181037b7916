//! A handle on a saga that was started: its key, its id and its outcome.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use super::engine::Engine;
use crate::engine::context::RuntimeError;
use crate::engine::outcome::{Gone, Outcome, OutcomeSlot, SagaFailure};
use crate::engine::start::StartedSaga;
use crate::env::{Activity, during};
use crate::key::Key;
use crate::step::Payload;
use crate::store::{SagaId, Store};

/// A saga that was started, now or before, and returns `R`. Dropping the handle changes nothing for the saga.
pub struct SagaHandle<S: Store, R = ()> {
    engine: Arc<Engine<S>>,
    slot: Arc<OutcomeSlot>,
    id: SagaId,
    key: Key,
    already_started: bool,
    returned: PhantomData<fn() -> R>,
}

impl<S: Store, R> SagaHandle<S, R> {
    pub(crate) fn new(
        engine: &Arc<Engine<S>>,
        slot: Arc<OutcomeSlot>,
        id: SagaId,
        key: Key,
        already_started: bool,
    ) -> Self {
        Self { engine: Arc::clone(engine), slot, id, key, already_started, returned: PhantomData }
    }

    pub(crate) fn of_start(engine: &Arc<Engine<S>>, started: StartedSaga) -> Self {
        if let Some(row) = &started.known {
            engine.outcomes.tell_of(row);
        }
        Self::new(engine, started.slot, started.id, started.key, started.known.is_some())
    }

    /// The saga's key.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The id of the saga's row.
    pub fn id(&self) -> SagaId {
        self.id
    }

    /// Whether the key was known before this start.
    pub fn already_started(&self) -> bool {
        self.already_started
    }

    /// Waits until the saga has ended or is stuck. A stuck saga may still end: see [`SagaHandle::closed`].
    ///
    /// # Errors
    /// When the runtime ends first; the saga goes on when a runtime runs again. And [`RuntimeError::Lost`], when the
    /// saga is no longer in the store.
    ///
    /// # Cancel safety
    /// Nothing is lost when it is dropped.
    pub async fn outcome(&self) -> Result<Outcome, RuntimeError> {
        self.wait(|_| true).await
    }

    /// Waits until the saga has ended. While it is stuck, this waits for an operator.
    ///
    /// # Errors
    /// When the runtime ends first; the saga goes on when a runtime runs again. And [`RuntimeError::Lost`], when the
    /// saga is no longer in the store.
    ///
    /// # Cancel safety
    /// Nothing is lost when it is dropped.
    pub async fn closed(&self) -> Result<Outcome, RuntimeError> {
        self.wait(|outcome| !matches!(outcome, Outcome::Stuck { .. })).await
    }

    async fn wait(&self, is_enough: impl Fn(&Outcome) -> bool) -> Result<Outcome, RuntimeError> {
        if crate::engine::context::is_inside_step() {
            return Err(RuntimeError::InsideStep);
        }
        let env = &*self.engine.ctx.env;
        during(env, Activity::Waiting, self.wait_for_outcome(is_enough)).await
    }

    async fn wait_for_outcome(&self, is_enough: impl Fn(&Outcome) -> bool) -> Result<Outcome, RuntimeError> {
        tokio::select! {
            biased;
            outcome = self.slot.outcome(is_enough) => {
                outcome.map_err(|Gone| RuntimeError::Lost { key: self.key.to_string() })
            }
            () = self.engine.ctx.lifecycle.stopped.cancelled() => Err(RuntimeError::Ended),
        }
    }
}

impl<S: Store, R: Payload> SagaHandle<S, R> {
    /// Waits until the saga has ended or is stuck, and returns its result. A handle without a type of result, `R = ()`, has
    /// one as soon as the saga has completed.
    ///
    /// # Errors
    /// When the saga was compensated, is stuck, or has no result: see [`SagaFailure`]. While it is stuck, wait for
    /// [`closed`](Self::closed) before you ask again. And when the runtime ends first, as for [`outcome`](Self::outcome).
    ///
    /// # Cancel safety
    /// Nothing is lost when it is dropped.
    ///
    /// # Examples
    /// That of [`SagaBuilder::returns`](crate::saga::SagaBuilder::returns).
    pub async fn result(&self) -> Result<R, SagaFailure> {
        self.outcome().await?.into_result()
    }
}

impl<S: Store, R> fmt::Debug for SagaHandle<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SagaHandle")
            .field("key", &self.key)
            .field("already_started", &self.already_started)
            .finish_non_exhaustive()
    }
}
