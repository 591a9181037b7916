//! Asking the store for outcomes that another process may have committed.

use std::sync::Arc;

use super::outcome::{Outcome, outcome_of};
use super::waiters::{CHUNK, Waiters, goes_on};
use crate::engine::context::EngineContext;
use crate::env::Pause;
use crate::log;
use crate::machine::SagaState;
use crate::store::{SagaId, SagaRow, Store, StoreError};

/// Tells the callers that wait in this process how their sagas ended.
pub(crate) struct OutcomeWatcher<S: Store> {
    pub(super) ctx: Arc<EngineContext<S>>,
    waiters: Arc<Waiters>,
}

impl<S: Store> OutcomeWatcher<S> {
    pub(crate) fn new(ctx: Arc<EngineContext<S>>, waiters: Arc<Waiters>) -> Self {
        Self { ctx, waiters }
    }
}

impl<S: Store> OutcomeWatcher<S> {
    /// Polls the store for the outcomes of sagas that callers wait for and that other processes may have ended.
    pub(crate) async fn watch(self: Arc<Self>) {
        // What ends in this process is told at once; the store is asked for the rest.
        let pause = if self.ctx.store.capabilities().shared { 1 } else { 10 };
        loop {
            let interval = self.ctx.settings.poll_interval.saturating_mul(pause);
            let is_whole = self.ctx.env.pause(Pause::of(interval)).await;
            let due = self.waiters.due(self.ctx.env.now(), !is_whole);
            for chunk in due.chunks(CHUNK) {
                match self.look_at(chunk).await {
                    Ok(()) => self.ctx.health.store_works("watch"),
                    Err(error) => self.ctx.health.store_failed("watch", &error),
                }
            }
        }
    }

    /// Tells those who wait for one of these sagas what became of it.
    async fn look_at(&self, sagas: &[SagaId]) -> Result<(), StoreError> {
        let mut moved = self.ctx.store.progress(sagas).await?;
        let lost = self.waiters.looked_for(sagas, &moved);
        if lost > 0 {
            log::error!(count = lost, "committed sagas are missing in the store");
        }
        self.waiters.moved(&moved);
        moved.retain(|standing| self.waiters.is_news(standing));
        if moved.is_empty() {
            return Ok(());
        }
        let moved: Vec<SagaId> = moved.into_iter().map(|standing| standing.saga).collect();
        for row in &self.ctx.store.sagas_by_id(&moved).await? {
            self.waiters.was_read(row.id, row.version);
            self.tell_of(row);
        }
        Ok(())
    }

    pub(crate) fn tell_of(&self, row: &SagaRow) {
        let outcome = self.outcome_of_row(row);
        if outcome.is_some() {
            self.waiters.tell(row.id, outcome);
        } else if goes_on(row.status) {
            self.waiters.goes_on(row.id);
        }
    }
}

impl<S: Store> OutcomeWatcher<S> {
    pub(crate) fn outcome_of_row(&self, row: &SagaRow) -> Option<Outcome> {
        if let Some(tombstone) = Outcome::of_tombstone(row) {
            return Some(tombstone);
        }
        let definition = self.ctx.definitions.get(&row.definition)?;
        match SagaState::decode(&row.state, definition.steps.len()) {
            Ok(state) => outcome_of(&definition.shape, &state),
            Err(reason) => Some(Outcome::Stuck { step: String::new(), reason }),
        }
    }
}
