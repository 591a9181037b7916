//! Purging ended sagas, and what else is kept for a time only.

use std::collections::HashSet;
use std::time::Duration;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension as _, Row};
use saga_core::key::{Key, Tenant};
use saga_core::store::{
    DefinitionId, EndedExpired, ExpireEnded, ExpiredCount, ExpiredSaga, Expiry, KnownSaga, MemberId, Purge, Purged,
    SagaId, SagaRow, SagaWithSteps, StoreError, StoreErrorKind, Timestamp, Unclosed, UnclosedFilter,
};

use crate::clock::{micros, plus};
use crate::statements::ended::{Ended, expire_ended, expire_hosted};
use crate::statements::expiry::{hosts, next_age};
use crate::statements::family::{below, with_work};
use crate::statements::published::forget_published;
use crate::statements::purge_sagas::{SAGAS_MAX, purge};
use crate::statements::rows::{self, FromRow, records_of, select_sagas};
use crate::statements::unclosed::{known, unclosed};
use crate::store::sagas::{history, work};
use crate::store::store::SqliteStore;
use crate::writer::session::Session;

#[async_trait]
impl Purge for SqliteStore {
    async fn lease_maintenance(&self, owner: MemberId, ttl: Duration) -> Result<Option<u64>, StoreError> {
        self.call("lease_maintenance", move |session| Ok(lease(session, owner, ttl)?)).await
    }

    async fn expired(&self, limit: usize) -> Result<Vec<ExpiredSaga>, StoreError> {
        let now = self.now();
        self.query("expired", move |conn| {
            conn.prepare_cached(
                "SELECT s.id, s.tenant, s.key, p.version, p.delete_at, p.hosts \
                 FROM saga_progress p JOIN saga_sagas s ON s.id = p.id \
                 WHERE p.expires_at <= ?1 AND p.ended_at IS NOT NULL ORDER BY p.expires_at, p.id LIMIT ?2",
            )?
            .query_map((now.0, rows::limit(limit)), ExpiredSaga::from_row)?
            .collect()
        })
        .await
    }

    async fn whole_sagas(&self, sagas: &[SagaId]) -> Result<Vec<SagaWithSteps>, StoreError> {
        let (sagas, now) = (sagas.to_vec(), self.now());
        self.query("whole_sagas", move |conn| whole_sagas(conn, &sagas, now)).await
    }

    async fn purge(&self, epoch: u64, sagas: &[ExpiredSaga], retry_interval: Duration) -> Result<Purged, StoreError> {
        let mut purged = Purged::default();
        for (number, some) in sagas.chunks(SAGAS_MAX).enumerate() {
            let some = some.to_vec();
            match self.call("purge", move |session| purge(session, epoch, &some, retry_interval)).await {
                Ok(more) => {
                    purged.tombstones.extend(more.tombstones);
                    purged.deleted.extend(more.deleted);
                    purged.kept.extend(more.kept);
                }
                // The lease was lost between two commits: nothing is said of the sagas that are left.
                Err(error) if number > 0 && error.kind() == StoreErrorKind::Conflict => break,
                Err(error) => return Err(error),
            }
        }
        Ok(purged)
    }

    async fn count_expired(&self, limit: usize) -> Result<Vec<ExpiredCount>, StoreError> {
        let now = self.now();
        self.query("count_expired", move |conn| count_expired(conn, limit, now)).await
    }

    async fn set_expiry(&self, tenant: &Tenant, key: &Key, expiry: Option<&Expiry>) -> Result<bool, StoreError> {
        let (tenant, key, expiry) = (tenant.clone(), key.clone(), expiry.cloned());
        self.call("set_expiry", move |session| {
            let ended = Ended::of_key(&session.conn, &tenant, &key)?;
            if let Some(ended) = &ended {
                ended.date(&session.conn, expiry.as_ref())?;
            }
            Ok(ended.is_some())
        })
        .await
    }

    async fn expire_ended(&self, request: &ExpireEnded) -> Result<EndedExpired, StoreError> {
        let request = request.clone();
        self.call("expire_ended", move |session| Ok(expire_ended(&session.conn, &request)?)).await
    }

    async fn expire_hosted(
        &self,
        definitions: &[DefinitionId],
        closed: &[(Tenant, Key)],
        delete_in: Duration,
    ) -> Result<u64, StoreError> {
        let (definitions, closed) = (definitions.to_vec(), closed.to_vec());
        self.call("expire_hosted", move |session| Ok(expire_hosted(session, &definitions, &closed, delete_in)?)).await
    }

    async fn unclosed(&self, epoch: u64, filter: &UnclosedFilter) -> Result<Unclosed, StoreError> {
        let filter = filter.clone();
        self.call("unclosed", move |session| unclosed(session, epoch, &filter)).await
    }

    async fn known(&self, tenant: &Tenant, keys: &[Key]) -> Result<Vec<KnownSaga>, StoreError> {
        let (tenant, keys) = (tenant.clone(), keys.to_vec());
        self.query("known", move |conn| known(conn, &tenant, &keys)).await
    }

    async fn forget_dead_letters(&self, older_than: Duration, limit: usize) -> Result<u64, StoreError> {
        self.call("forget_dead_letters", move |session| {
            let until = session.now().0.saturating_sub(micros(older_than));
            let sql = "DELETE FROM saga_dead_letters WHERE id IN (SELECT id FROM saga_dead_letters \
                 WHERE decided_at < ?1 AND state <> 'open' ORDER BY decided_at LIMIT ?2)";
            Ok(session.conn.prepare_cached(sql)?.execute((until, rows::limit(limit)))? as u64)
        })
        .await
    }

    async fn delete_expired_keys(&self, limit: usize) -> Result<u64, StoreError> {
        self.forget_keys(limit).await
    }

    async fn forget_published(&self, older_than: Duration, limit: usize) -> Result<u64, StoreError> {
        self.call("forget_published", move |session| {
            let until = session.now().0.saturating_sub(micros(older_than));
            Ok(forget_published(&session.conn, until, limit)?)
        })
        .await
    }
}

fn lease(session: &Session, owner: MemberId, ttl: Duration) -> rusqlite::Result<Option<u64>> {
    let (conn, now, members) = (&session.conn, session.now(), &session.shared.members);
    let (epoch, holder) = conn
        .prepare_cached("SELECT epoch, owner, leased_until FROM saga_maintenance WHERE name = 'purge'")?
        .query_row((), |row| {
            Ok((rows::unsigned(row, 0)?, (row.get::<_, Option<i64>>(1)?, row.get::<_, Option<i64>>(2)?)))
        })?;
    let holder = match holder {
        (Some(holder), Some(until)) if until > now.0 => Some(MemberId(holder)),
        _ => None,
    };
    let holder = holder.filter(|holder| members.is_alive(*holder, now));
    if holder.is_some_and(|holder| holder != owner) || !members.is_alive(owner, now) {
        return Ok(None);
    }
    let epoch = epoch + u64::from(holder.is_none());
    conn.prepare_cached("UPDATE saga_maintenance SET epoch = ?1, owner = ?2, leased_until = ?3 WHERE name = 'purge'")?
        .execute((rows::signed(epoch), owner.0, plus(now, ttl).0))?;
    Ok(Some(epoch))
}

fn whole_sagas(conn: &Connection, sagas: &[SagaId], read_at: Timestamp) -> rusqlite::Result<Vec<SagaWithSteps>> {
    let mut found: Vec<SagaRow> = Vec::with_capacity(sagas.len());
    let mut by_id = conn.prepare_cached(select_sagas!("WHERE s.id = ?1"))?;
    for id in sagas {
        let Some(outermost) = by_id.query_row([id.0], SagaRow::from_row).optional()? else { continue };
        let below = below(conn, outermost.tenant.as_str(), outermost.key.as_str())?;
        found.push(outermost);
        for relative in below {
            found.push(by_id.query_row([relative.id.0], SagaRow::from_row)?);
        }
    }
    let working = with_work(conn, &found.iter().map(|saga| saga.id).collect::<HashSet<_>>())?;
    let whole = found.into_iter().map(|saga| {
        let records = records_of(conn, saga.tenant.as_str(), saga.key.as_str())?;
        let work = if working.contains(&saga.id) { work(conn, saga.id)? } else { Vec::new() };
        Ok(SagaWithSteps { records, history: history(conn, saga.id)?, work, read_at, saga })
    });
    whole.collect()
}

fn count_expired(conn: &Connection, limit: usize, now: Timestamp) -> rusqlite::Result<Vec<ExpiredCount>> {
    conn.prepare_cached(
        "SELECT d.name, d.version, e.delete_at IS NULL AS is_deleted, e.delete_at, count(*), \
         sum(length(e.state) + length(s.input) + coalesce((SELECT sum(coalesce(length(r.output), 0) \
             + coalesce(length(r.error), 0) + coalesce(length(r.input), 0)) \
             FROM saga_records r WHERE r.tenant = s.tenant AND r.key = s.key), 0)) \
         FROM (SELECT id, delete_at, state FROM saga_progress WHERE expires_at <= ?1 AND ended_at IS NOT NULL \
             ORDER BY expires_at, id LIMIT ?2) e \
         JOIN saga_sagas s ON s.id = e.id JOIN saga_definitions d ON d.id = s.definition \
         GROUP BY d.name, d.version, is_deleted ORDER BY d.name, d.version, is_deleted",
    )?
    .query_map((now.0, rows::limit(limit)), |row| {
        let definition = DefinitionId { name: rows::text(row, 0)?.into(), version: row.get(1)? };
        let (sagas, bytes) = (rows::unsigned(row, 4)?, rows::unsigned(row, 5)?);
        Ok(ExpiredCount { definition, next: next_age(row.get(3)?), sagas, bytes })
    })?
    .collect()
}

impl FromRow for ExpiredSaga {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: SagaId(row.get(0)?),
            tenant: rows::tenant(row, 1)?,
            key: rows::key(row, 2)?,
            version: rows::unsigned(row, 3)?,
            next: next_age(row.get(4)?),
            hosts: hosts(row, 5)?,
        })
    }
}
