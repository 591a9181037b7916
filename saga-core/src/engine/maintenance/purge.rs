//! One batch of sagas whose time is over.

use std::collections::{BTreeMap, BTreeSet};

use super::maintenance::{Maintenance, PassError};
use super::refused_sagas::RefusedSagas;
use crate::engine::commit::changes;
use crate::engine::message::CLOSED_MAX;
use crate::engine::store_calls::{catch_panic, store_error};
use crate::env::{Activity, during, timeout};
use crate::key::{Key, Tenant};
use crate::log;
use crate::store::{ArchiveBatch, ExpiredSaga, KeptFor, Purged, SagaId, SagaRow, SagaWithSteps, Store, StoreErrorKind};
use crate::unwind::caught_while;

/// What became of a batch of expired sagas.
struct Archived {
    /// Those that were archived whole, and may be purged.
    sagas: Vec<ExpiredSaga>,
    /// How many were put off for the first time, since they are not finished.
    put_off: usize,
}

impl<S: Store> Maintenance<S> {
    /// Archives and purges up to `size` sagas, those last that the archive refused; answers whether more may be due.
    pub(super) async fn purge_batch(
        &self,
        epoch: u64,
        size: usize,
        refused: &mut RefusedSagas,
    ) -> Result<bool, PassError> {
        let looked_at = size + refused.count(self.ctx.env.now());
        let expired = refused.next(catch_panic("expired", self.ctx.store.expired(looked_at)).await?, size);
        let Some(first) = expired.first().map(|saga| (saga.id, saga.key.clone())) else { return Ok(false) };
        let retry_interval = self.ctx.settings.purge_retry_interval;
        let Archived { sagas, put_off } = match self.archive(expired, refused).await {
            Err(PassError::Archive(error)) if size == 1 => {
                let (id, saga) = first;
                log::warn!(%saga, %error, "saga not archived");
                refused.add(id, self.ctx.env.now().saturating_add(retry_interval));
                return Err(PassError::Archive(error));
            }
            archived => archived?,
        };
        self.tell_hosts(&sagas).await?;
        let purged = catch_panic("purge", self.ctx.store.purge(epoch, &sagas, retry_interval)).await?;
        log_batch(&purged);
        // What was skipped is looked at in the next pass, and what was put off comes last from now on.
        Ok(sagas.len() + put_off == size && (put_off > 0 || !is_nothing(&purged)))
    }

    /// Archives those that are still whole. A saga that moved meanwhile is left for a later pass. So is one with a sub-saga that has not
    /// ended: that could end between its archive and its purge.
    async fn archive(&self, expired: Vec<ExpiredSaga>, refused: &mut RefusedSagas) -> Result<Archived, PassError> {
        let Some(archive) = &self.archive else { return Ok(Archived { sagas: expired, put_off: 0 }) };
        // A tombstone was archived when it became one.
        let ids: Vec<SagaId> = expired.iter().map(|saga| saga.id).collect();
        let whole = match catch_panic("whole_sagas", self.ctx.store.whole_sagas(&ids)).await {
            // One of them cannot be read, so it cannot be archived either.
            Err(error) if error.kind() == StoreErrorKind::Corrupt => return Err(PassError::Archive(error.into())),
            whole => whole?,
        };
        let (finished, unfinished): (Vec<_>, Vec<_>) =
            families(whole).into_iter().partition(|family| is_finished(family));
        let put_off = self.put_off(&unfinished, refused);
        let outermost = |family: &Vec<SagaWithSteps>| family.first().map(|whole| (whole.saga.id, whole.saga.version));
        let seen: BTreeMap<SagaId, u64> = finished.iter().filter_map(outermost).collect();
        // A sub-saga that is one of the expired sagas as well is archived once.
        let mut archived = BTreeSet::new();
        let mut is_new = |whole: &SagaWithSteps| !whole.saga.is_tombstone() && archived.insert(whole.saga.id);
        let whole: Vec<_> = finished.into_iter().flatten().filter(|whole| is_new(whole)).collect();
        if !whole.is_empty() {
            let batch = ArchiveBatch::new(whole);
            // Afterwards another process may have the lease, and would archive them too.
            let limit = self.ctx.settings.lease_ttl;
            let storing = timeout(&*self.ctx.env, limit, caught_while(archive.store(&batch)));
            let stored = match during(&*self.ctx.env, Activity::Store, storing).await {
                Ok(Ok(stored)) => stored,
                Ok(Err(panic)) => Err(format!("the archive panicked: {panic}").into()),
                Err(_) => Err(format!("the archive took longer than {limit:?}, which is `lease_ttl`").into()),
            };
            stored.map_err(PassError::Archive)?;
        }
        let is_whole = |saga: &ExpiredSaga| seen.get(&saga.id) == Some(&saga.version);
        Ok(Archived { sagas: expired.into_iter().filter(is_whole).collect(), put_off })
    }

    /// Others are archived before these, as long as the store would keep what cannot be purged yet. Answers how many of these are put
    /// off for the first time.
    fn put_off(&self, unfinished: &[Vec<SagaWithSteps>], refused: &mut RefusedSagas) -> usize {
        if unfinished.is_empty() {
            return 0;
        }
        log::info!(count = unfinished.len(), reason = ?KeptFor::Unfinished, "expired sagas kept");
        let until = self.ctx.env.now().saturating_add(self.ctx.settings.purge_retry_interval);
        let outermost = unfinished.iter().filter_map(|family| family.first());
        outermost.filter(|outermost| refused.add(outermost.saga.id, until)).count()
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

/// Each of the expired sagas with its sub-sagas, which follow it. A sub-saga may also be one of the expired sagas itself: a step that
/// an event asked for has a date of its own.
fn families(whole: Vec<SagaWithSteps>) -> Vec<Vec<SagaWithSteps>> {
    let mut families: Vec<Vec<SagaWithSteps>> = Vec::new();
    for next in whole {
        match families.last_mut().filter(|family| is_below(&next.saga, family)) {
            Some(family) => family.push(next),
            None => families.push(vec![next]),
        }
    }
    families
}

/// Whether the saga is a sub-saga in this family, and not there yet.
fn is_below(saga: &SagaRow, family: &[SagaWithSteps]) -> bool {
    let Some(SagaWithSteps { saga: outer, .. }) = family.first() else { return false };
    saga.tenant == outer.tenant && saga.key.is_below(&outer.key) && family.iter().all(|known| known.saga.id != saga.id)
}

/// Whether nothing of a family moves any more.
fn is_finished(family: &[SagaWithSteps]) -> bool {
    family.iter().all(|whole| whole.saga.status.is_ended() && whole.work.is_empty())
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
