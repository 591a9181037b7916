//! Waiting until a saga changes.

use std::sync::Arc;

use saga_core::store::SagaId;
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::polling::Polling;
use super::sagas::{Moves, Sagas};

/// The changes of one saga, for one client.
pub(super) struct Changes {
    source: Source,
    /// How many clients wait is limited.
    _permit: OwnedSemaphorePermit,
}

enum Source {
    /// The runtime in this process tells them.
    Runtime(Box<dyn Moves>),
    /// The store is asked.
    Store(watch::Receiver<u64>),
}

impl Changes {
    pub(super) fn of(sagas: &dyn Sagas, polling: &Arc<Polling>, saga: SagaId, permit: OwnedSemaphorePermit) -> Self {
        let source = sagas.moves(saga).map_or_else(|| Source::Store(polling.subscribe(saga)), Source::Runtime);
        Self { source, _permit: permit }
    }

    /// Waits for a change after the last call, or after this was made; false if no more changes are told.
    ///
    /// # Cancel safety
    /// Nothing is lost when it is dropped.
    pub(super) async fn next(&mut self) -> bool {
        match &mut self.source {
            Source::Runtime(moves) => moves.next().await.is_ok(),
            Source::Store(version) => version.changed().await.is_ok(),
        }
    }
}
