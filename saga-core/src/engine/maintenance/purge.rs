//! One batch of sagas whose time is over.

use std::collections::BTreeMap;

use super::maintenance::{Maintenance, PassError};
use crate::engine::commit::changes;
use crate::engine::message::CLOSED_MAX;
use crate::engine::store_calls::{catch_panic, store_error};
use crate::env::{Activity, during};
use crate::key::{Key, Tenant};
use crate::log;
use crate::store::{ArchiveBatch, ExpiredSaga, Purged, SagaId, Store};
use crate::unwind::caught_while;

impl<S: Store> Maintenance<S> {
    /// Archives and purges up to `size` sagas; answers whether more may be due.
    pub(super) async fn purge_batch(&self, epoch: u64, size: usize) -> Result<bool, PassError> {
        let expired = catch_panic("expired", self.ctx.store.expired(size)).await?;
        if expired.is_empty() {
            return Ok(false);
        }
        let archived = self.archive(expired).await?;
        self.tell_hosts(&archived).await?;
        let retry_interval = self.ctx.settings.purge_retry_interval;
        let purged = catch_panic("purge", self.ctx.store.purge(epoch, &archived, retry_interval)).await?;
        log_batch(&purged);
        // What was skipped is looked at in the next pass.
        Ok(archived.len() == size && !is_nothing(&purged))
    }

    /// Archives those that are still whole. A saga that moved meanwhile is left for a later pass.
    async fn archive(&self, expired: Vec<ExpiredSaga>) -> Result<Vec<ExpiredSaga>, PassError> {
        let Some(archive) = &self.archive else { return Ok(expired) };
        // A tombstone was archived when it became one.
        let ids: Vec<SagaId> = expired.iter().map(|saga| saga.id).collect();
        let whole = catch_panic("whole_sagas", self.ctx.store.whole_sagas(&ids)).await?;
        let seen: BTreeMap<SagaId, u64> = whole.iter().map(|whole| (whole.saga.id, whole.saga.version)).collect();
        let whole: Vec<_> = whole.into_iter().filter(|whole| !whole.saga.is_tombstone()).collect();
        if !whole.is_empty() {
            let batch = ArchiveBatch::new(whole);
            let storing = during(&*self.ctx.env, Activity::Store, archive.store(&batch));
            let stored = caught_while(storing).await;
            let stored = stored.unwrap_or_else(|panic| Err(format!("the archive panicked: {panic}").into()));
            stored.map_err(PassError::Archive)?;
        }
        Ok(expired.into_iter().filter(|saga| seen.get(&saga.id) == Some(&saga.version)).collect())
    }

    /// Tells the services that did steps of these sagas that nothing more will be asked for them. A crash before the purge
    /// repeats it.
    async fn tell_hosts(&self, expired: &[ExpiredSaga]) -> Result<(), PassError> {
        let mut closed: BTreeMap<(&Tenant, &str), Vec<&Key>> = BTreeMap::new();
        for saga in expired {
            for host in &saga.hosts {
                closed.entry((&saga.tenant, host)).or_default().push(&saga.key);
            }
        }
        let mut messages = Vec::new();
        for ((tenant, host), keys) in closed {
            let parts = keys.chunks(CLOSED_MAX);
            messages.extend(parts.map(|part| self.messages.closed_message(tenant, host, part)));
        }
        if messages.is_empty() {
            return Ok(());
        }
        let recorded = self.committer.recorder.record(changes::send(messages)).await;
        recorded.map_err(|error| store_error(&error))?.ok();
        self.committer.outbox.wake_relay();
        Ok(())
    }
}

fn is_nothing(purged: &Purged) -> bool {
    purged.tombstones.is_empty() && purged.deleted.is_empty() && purged.kept.is_empty()
}

fn log_batch(purged: &Purged) {
    log::debug!(count = purged.tombstones.len() + purged.deleted.len(), "sagas purged");
    if let Some((_, why)) = purged.kept.first() {
        log::info!(count = purged.kept.len(), reason = ?why, "expired sagas kept");
    }
}
