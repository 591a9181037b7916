//! Commands that were called off while a worker held them.

use std::time::Duration;

use super::called_off::{called_off, make_due};
use super::committer::Committer;
use crate::engine::instance::{SagaInstance, WorkItem};
use crate::log;
use crate::machine::Phase;
use crate::store::{SagaId, Store, StoreError};

impl<S: Store> Committer<S> {
    /// Makes commands due that this process has just left until later, and whose sagas began to compensate after they were
    /// claimed: a cancel leaves out the commands that a worker holds.
    pub(crate) async fn hurry_called_off(&self, left: &[WorkItem<S>]) {
        let goes_forward = |command: &&WorkItem<S>| command.saga.state.phase == Phase::Running && !command.is_undo();
        let left: Vec<_> = left.iter().filter(goes_forward).collect();
        if left.is_empty() {
            return;
        }
        match self.make_called_off_due(&left).await {
            Ok(true) => self.scheduler.announce_unclaimed(Duration::ZERO),
            Ok(false) => {}
            Err(error) => {
                let (tenant, saga) = (left[0].saga.tenant.as_str(), &left[0].saga.key);
                log::debug!(tenant, %saga, %error, "waiting saga not woken");
            }
        }
    }

    async fn make_called_off_due(&self, left: &[&WorkItem<S>]) -> Result<bool, StoreError> {
        let ids: Vec<SagaId> = left.iter().map(|command| command.saga.id).collect();
        let found = self.ctx.store.progress(&ids).await?;
        let mut due = Vec::new();
        for command in left {
            let SagaInstance { id, version, tenant, key, .. } = &command.saga;
            let has_moved = found.iter().any(|standing| standing.saga == *id && standing.version != *version);
            if !has_moved {
                continue;
            }
            let Some(stored) = self.ctx.store.saga_with_steps(tenant, key).await? else { continue };
            let mut saga = command.saga.clone();
            if saga.refresh(&stored.saga, stored.records).is_err()
                || saga.state.phase == Phase::Running
                || saga.state.is_paused()
            {
                continue;
            }
            let wanted = called_off(&stored.work, &saga, &self.ctx.settings);
            due.extend(wanted.into_iter().filter(|row| row.work.id == command.work.id));
        }
        make_due(&*self.ctx.store, &*self.ctx.env, due).await
    }
}
