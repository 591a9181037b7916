//! Purging ended sagas.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::Duration;

use async_trait::async_trait;

use crate::key::{Key, Tenant};
use crate::memory::MemoryStore;
use crate::memory::clock::Moment;
use crate::memory::store::unclosed::unclosed;
use crate::memory::tables::data::{Data, SagaData};
use crate::memory::tables::expiry::Dated;
use crate::memory::tables::locks::Lock;
use crate::memory::tables::work_row::HeldLease;
use crate::store::{
    DefinitionId, EndedExpired, ExpireEnded, ExpiredCount, ExpiredSaga, Expiry, HistoryKind, KeptFor, KnownSaga, Lease,
    MemberId, NextAge, Purge, Purged, SagaId, SagaWithSteps, StoreError, StoreErrorKind, Timestamp, Unclosed,
    UnclosedFilter,
};

#[async_trait]
impl Purge for MemoryStore {
    async fn lease_maintenance(&self, owner: MemberId, ttl: Duration) -> Result<Option<u64>, StoreError> {
        self.writing("lease_maintenance", |data, now| {
            let held = data.maintenance.lease.filter(|lease| data.members.holds(*lease, now));
            if held.is_some_and(|lease| lease.owner != owner) || !data.members.is_alive(owner, now) {
                return Some(Ok(None));
            }
            data.maintenance.epoch += u64::from(held.is_none());
            data.maintenance.lease = Some(HeldLease::new(Lease { owner, ttl }, now));
            Some(Ok(Some(data.maintenance.epoch)))
        })
        .await
    }

    async fn expired(&self, limit: usize) -> Result<Vec<ExpiredSaga>, StoreError> {
        self.reading("expired", |data, now| {
            let due = due(data, now).take(limit);
            let expired = due.map(|(saga, dated)| ExpiredSaga::of_row(&saga.row, dated.next(), dated.hosts.clone()));
            expired.collect()
        })
        .await
    }

    async fn whole_sagas(&self, sagas: &[SagaId]) -> Result<Vec<SagaWithSteps>, StoreError> {
        self.reading("whole_sagas", |data, now| {
            let outermost = sagas.iter().filter_map(|id| data.sagas.get(id)).map(|saga| &saga.row);
            let all = outermost.flat_map(|row| data.family(&row.tenant, &row.key));
            let whole = all.filter_map(|id| {
                let saga = data.sagas.get(&id)?;
                let records = data.records_of(&saga.row.tenant, &saga.row.key);
                Some(SagaWithSteps { records, ..data.with_work(saga, now) })
            });
            whole.collect()
        })
        .await
    }

    async fn purge(&self, epoch: u64, sagas: &[ExpiredSaga], retry_interval: Duration) -> Result<Purged, StoreError> {
        self.writing("purge", |data, now| {
            if data.maintenance.epoch != epoch {
                return Some(Err(lost_lease("purge")));
            }
            let mut purging = Purging { now, retry_interval, purged: Purged::default() };
            for saga in sagas {
                purging.purge(data, saga);
            }
            Some(Ok(purging.purged))
        })
        .await
    }

    async fn count_expired(&self, limit: usize) -> Result<Vec<ExpiredCount>, StoreError> {
        self.reading("count_expired", |data, now| {
            let mut counts: BTreeMap<(DefinitionId, bool), ExpiredCount> = BTreeMap::new();
            for (saga, dated) in due(data, now).take(limit) {
                let (definition, next) = (saga.row.definition.clone(), dated.next());
                let count = counts.entry((definition.clone(), next == NextAge::Deleted));
                let count = count.or_insert(ExpiredCount { definition, next, sagas: 0, bytes: 0 });
                count.sagas += 1;
                count.bytes += bytes_of(data, saga);
            }
            counts.into_values().collect()
        })
        .await
    }

    async fn set_expiry(&self, tenant: &Tenant, key: &Key, expiry: Option<&Expiry>) -> Result<bool, StoreError> {
        self.writing("set_expiry", |data, _| {
            let id = data.saga_of(tenant, key).map(|saga| saga.row.id);
            Some(Ok(id.is_some_and(|id| data.redate(id, expiry))))
        })
        .await
    }

    async fn expire_ended(&self, request: &ExpireEnded) -> Result<EndedExpired, StoreError> {
        self.writing("expire_ended", |data, _| {
            let from = request.after.map_or(Bound::Unbounded, Bound::Excluded);
            let seen: Vec<SagaId> =
                data.sagas.range((from, Bound::Unbounded)).map(|(id, _)| *id).take(request.limit).collect();
            let is_meant = |id: &&SagaId| {
                data.sagas.get(id).is_some_and(|saga| {
                    let row = &saga.row;
                    row.definition == request.definition
                        && row.status == request.status
                        && !row.key.as_str().contains('>')
                })
            };
            let meant: Vec<SagaId> = seen.iter().filter(is_meant).copied().collect();
            let dated = meant.into_iter().filter(|id| data.redate(*id, Some(&request.expiry))).count();
            let next = seen.last().copied().filter(|_| seen.len() == request.limit);
            Some(Ok(EndedExpired { sagas: dated as u64, next }))
        })
        .await
    }

    async fn expire_hosted(
        &self,
        definitions: &[DefinitionId],
        closed: &[(Tenant, Key)],
        delete_in: Duration,
    ) -> Result<u64, StoreError> {
        self.writing("expire_hosted", |data, now| {
            let steps_of = |(tenant, key): &(Tenant, Key)| {
                let own = data.keys.get(&(tenant.clone(), key.clone())).copied();
                data.family(tenant, key).into_iter().filter(move |id| Some(*id) != own)
            };
            let below = closed.iter().flat_map(steps_of);
            let is_meant = |id: &SagaId| {
                let saga = data.sagas.get(id).map(|saga| &saga.row);
                saga.is_some_and(|row| definitions.contains(&row.definition) && row.ended_at.is_some())
            };
            let meant: BTreeSet<SagaId> = below.filter(is_meant).collect();
            for id in &meant {
                let dated = Dated { at: now.plus(delete_in), delete_at: None, hosts: Vec::new() };
                data.set_dated(*id, Some(dated));
            }
            Some(Ok(meant.len() as u64))
        })
        .await
    }

    async fn unclosed(&self, epoch: u64, filter: &UnclosedFilter) -> Result<Unclosed, StoreError> {
        self.writing("unclosed", |data, now| {
            if data.maintenance.epoch != epoch {
                return Some(Err(lost_lease("unclosed")));
            }
            Some(Ok(unclosed(data, filter, now)))
        })
        .await
    }

    async fn known(&self, tenant: &Tenant, keys: &[Key]) -> Result<Vec<KnownSaga>, StoreError> {
        self.reading("known", |data, _| {
            let distinct: BTreeSet<&Key> = keys.iter().collect();
            let known = distinct.into_iter().filter_map(|key| data.saga_of(tenant, key));
            known.map(|saga| KnownSaga { key: saga.row.key.clone(), is_tombstone: saga.row.is_tombstone() }).collect()
        })
        .await
    }

    async fn forget_dead_letters(&self, older_than: Duration, limit: usize) -> Result<u64, StoreError> {
        self.writing("forget_dead_letters", |data, now| {
            Some(Ok(data.dead_letters.forget(now.minus(older_than), limit)))
        })
        .await
    }

    async fn delete_expired_keys(&self, limit: usize) -> Result<u64, StoreError> {
        self.forget_keys(limit).await
    }

    async fn forget_published(&self, older_than: Duration, limit: usize) -> Result<u64, StoreError> {
        self.writing("forget_published", |data, now| {
            Some(Ok(data.outbox.forget_published(now.minus(older_than), limit)))
        })
        .await
    }
}

fn lost_lease(operation: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::Conflict, operation, "another process has the lease of the maintenance task")
}

/// The sagas whose time is over, longest first.
fn due(data: &Data, now: Timestamp) -> impl Iterator<Item = (&SagaData, &Dated)> {
    let due = data.expiring.iter().take_while(move |(at, _)| *at <= now);
    due.filter_map(|(_, id)| {
        let saga = data.sagas.get(id)?;
        Some((saga, saga.dated.as_ref()?))
    })
}

/// One call of `purge`.
struct Purging {
    now: Timestamp,
    retry_interval: Duration,
    purged: Purged,
}

impl Purging {
    fn purge(&mut self, data: &mut Data, expired: &ExpiredSaga) {
        let now = self.now;
        let Some(saga) = data.sagas.get(&expired.id) else { return };
        let Some(dated) = saga.dated.clone() else { return };
        let is_same = saga.row.version == expired.version && dated.next() == expired.next;
        if !is_same || dated.at > now || saga.row.ended_at.is_none() {
            return;
        }
        let family = data.family(&expired.tenant, &expired.key);
        if family.iter().any(|id| data.locks.holder(&Lock::Saga(*id), None).is_some()) {
            return;
        }
        if let Some(why) = kept_for(data, expired, &family) {
            data.set_dated(expired.id, Some(dated.retried_in(self.retry_interval, now)));
            self.purged.kept.push((expired.id, why));
            return;
        }
        let subs: Vec<SagaId> = family.into_iter().filter(|id| *id != expired.id).collect();
        for id in subs {
            keep_audit_log(data, id, expired.id);
            data.delete_saga(id);
        }
        match dated.emptied(now) {
            None => {
                data.delete_saga(expired.id);
                self.purged.deleted.push(expired.id);
            }
            Some(tombstone) => {
                empty(data, expired);
                data.set_dated(expired.id, Some(tombstone));
                self.purged.tombstones.push(expired.id);
            }
        }
    }
}

/// Why a saga must not be taken yet.
fn kept_for(data: &Data, expired: &ExpiredSaga, family: &[SagaId]) -> Option<KeptFor> {
    let sagas = || family.iter().filter_map(|id| data.sagas.get(id));
    if sagas().any(|saga| saga.row.ended_at.is_none() || !saga.work.is_empty()) {
        return Some(KeptFor::Unfinished);
    }
    let above = expired.key.as_str().match_indices('>').map(|(end, _)| &expired.key.as_str()[..end]);
    let keys: Vec<&str> = sagas().map(|saga| saga.row.key.as_str()).chain(above).collect();
    let is_named = |named: &BTreeSet<&str>| keys.iter().any(|key| named.contains(key));
    if is_named(&data.dead_letters.sagas_named(&expired.tenant)) {
        return Some(KeptFor::DeadLetter);
    }
    is_named(&data.outbox.sagas_named(&expired.tenant)).then_some(KeptFor::Outbox)
}

/// Takes all but the key away.
fn empty(data: &mut Data, expired: &ExpiredSaga) {
    data.records.remove(&(expired.tenant.clone(), expired.key.clone()));
    let Some(saga) = data.sagas.get_mut(&expired.id) else { return };
    saga.row.input = Vec::new();
    saga.row.state = Vec::new();
    saga.history.retain(|(_, entry)| entry.kind == HistoryKind::Operator);
}

/// What operators did with a sub-saga becomes part of the outermost saga's history.
fn keep_audit_log(data: &mut Data, of: SagaId, by: SagaId) {
    let acts = data.sagas.get(&of).map(|saga| saga.history.clone()).unwrap_or_default();
    let Some(saga) = data.sagas.get_mut(&by) else { return };
    let acts = acts.into_iter().filter(|(_, entry)| entry.kind == HistoryKind::Operator);
    saga.history.extend(acts.map(|(at, mut entry)| {
        entry.saga = by;
        (at, entry)
    }));
    saga.history.sort_by_key(|(at, _)| *at);
    for (_, entry) in data.audit_log.iter_mut().filter(|(_, entry)| entry.saga == of) {
        entry.saga = by;
    }
}

fn bytes_of(data: &Data, saga: &SagaData) -> u64 {
    let records = data.records_of(&saga.row.tenant, &saga.row.key);
    let lengths = records.iter().flat_map(|record| [&record.output, &record.error, &record.input]);
    let records: usize = lengths.flatten().map(Vec::len).sum();
    (saga.row.input.len() + saga.row.state.len() + records) as u64
}
