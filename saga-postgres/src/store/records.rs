//! Step records, and decisions outside a step transaction.

use std::collections::HashMap;

use async_trait::async_trait;
use saga_core::key::{Key, Tenant};
use saga_core::store::{Applied, Changes, Miss, NewSaga, Records, SagaId, SagaRow, StepId, StepRecord, StoreError};
use sqlx::PgConnection;

use crate::error::{Commits, misuse, store_error};
use crate::rows::definition_numbers::Numbers;
use crate::rows::rows::{FromRow, SELECT_RECORDS};
use crate::store::changes::{
    Obstacle, ObstacleKind, WriteOutcome, definitions, refuse_duplicate_changes, split_by_rows,
};
use crate::store::lock_wait::LockWait;
use crate::store::store::PostgresStore;

const OPERATION: &str = "record";

#[async_trait]
impl Records for PostgresStore {
    async fn record(&self, changes: Vec<Changes>) -> Result<Vec<Applied>, StoreError> {
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        refuse_duplicate_changes(OPERATION, &changes)?;
        let parts = split_by_rows(&changes);
        let unlocks = changes.iter().any(|change| !change.unlocked.is_empty());
        let unchecked = unchecked_sagas(&changes);
        if self.autocommits() && parts.len() == 1 && !unlocks && unchecked.is_empty() {
            let mut conn = self.acquire(OPERATION).await?;
            let numbers =
                self.number_definitions(&mut conn, OPERATION, definitions(&changes), LockWait::Short, true).await?;
            let applied = self.record_on(&mut conn, &changes, &numbers, Commits::AtOnce).await;
            conn.release_if_usable(&applied);
            return applied;
        }
        let (store, mut changes) = (self.clone(), changes);
        let applied = self.in_transaction(OPERATION, move |conn| {
            Box::pin(async move {
                if !unchecked.is_empty() {
                    store.leave_out_gone(conn, &unchecked, &mut changes).await?;
                }
                let numbers =
                    store.number_definitions(conn, OPERATION, definitions(&changes), LockWait::Short, false).await?;
                let mut applied = Vec::with_capacity(changes.len());
                for part in parts {
                    applied.extend(store.record_on(conn, &changes[part], &numbers, Commits::Later).await?);
                }
                store.unlock_applied(conn, OPERATION, &changes, &applied).await?;
                Ok((applied, numbers))
            })
        });
        let (applied, numbers) = applied.await?;
        self.remember_definitions(&numbers);
        Ok(applied)
    }

    async fn record_of(&self, tenant: &Tenant, key: &Key, step: &StepId) -> Result<Option<StepRecord>, StoreError> {
        let sql = self.sql(&format!("{SELECT_RECORDS} WHERE r.tenant = $1 AND r.key = $2 AND r.step = $3"));
        let query = sqlx::query(sql)
            .bind(tenant.as_str().to_owned())
            .bind(key.as_str().to_owned())
            .bind(step.as_str().to_owned());
        let rows = self.read_rows("record_of", query).await?;
        rows.first().map(StepRecord::from_row).transpose().map_err(|error| store_error("record_of", error))
    }

    async fn records_of(&self, tenant: &Tenant, key: &Key) -> Result<Vec<StepRecord>, StoreError> {
        self.records_where("records_of", "", tenant, key).await
    }

    async fn records_of_steps(&self, tenant: &Tenant, key: &Key) -> Result<Vec<StepRecord>, StoreError> {
        self.records_where("records_of_steps", OF_STEPS, tenant, key).await
    }
}

/// The sagas into whose histories changes write without a check of a version or a work row of theirs: an operator restarts
/// one that has ended, for example. Others that are purged meanwhile are a miss.
fn unchecked_sagas(changes: &[Changes]) -> Vec<SagaId> {
    let starts = |saga: SagaId| changes.iter().filter_map(|change| change.start.as_ref()).any(|new| new.id == saga);
    let is_checked =
        |change: &Changes| change.saga.is_some() || !change.finished.is_empty() || !change.postponed.is_empty();
    let unchecked = changes.iter().filter(|&change| !is_checked(change)).flat_map(|change| &change.history);
    unchecked.map(|entry| entry.saga).filter(|saga| !starts(*saga)).collect()
}

/// Leaves out the records of items, and of repeated undos.
pub(crate) const OF_STEPS: &str = "AND (r.step NOT LIKE '%#%' OR r.step LIKE '%#0')";

impl PostgresStore {
    async fn records_where(
        &self,
        operation: &'static str,
        which: &str,
        tenant: &Tenant,
        key: &Key,
    ) -> Result<Vec<StepRecord>, StoreError> {
        let sql = format!("{SELECT_RECORDS} WHERE r.tenant = $1 AND r.key = $2 {which} ORDER BY r.position, r.step");
        let query = sqlx::query(self.sql(&sql)).bind(tenant.as_str().to_owned()).bind(key.as_str().to_owned());
        let rows = self.read_rows(operation, query).await?;
        rows.iter().map(StepRecord::from_row).collect::<Result<_, _>>().map_err(|error| store_error(operation, error))
    }

    /// Takes entries of sagas that are gone out of the histories of these changes. A purge leaves the other sagas as they
    /// are until the commit.
    async fn leave_out_gone(
        &self,
        conn: &mut PgConnection,
        sagas: &[SagaId],
        changes: &mut [Changes],
    ) -> Result<(), StoreError> {
        let ids: Vec<i64> = sagas.iter().map(|saga| saga.0).collect();
        let sql = "SELECT p.id FROM {schema}.progress p WHERE p.id = ANY ($1) ORDER BY p.id FOR KEY SHARE NOWAIT";
        let query = sqlx::query_scalar(self.sql(sql)).bind(ids).persistent(false);
        let there: Vec<i64> = query.fetch_all(conn).await.map_err(|error| store_error(OPERATION, error))?;
        for change in changes {
            change.history.retain(|entry| !sagas.contains(&entry.saga) || there.contains(&entry.saga.0));
        }
        Ok(())
    }

    async fn record_on(
        &self,
        conn: &mut PgConnection,
        changes: &[Changes],
        numbers: &Numbers,
        commits: Commits,
    ) -> Result<Vec<Applied>, StoreError> {
        let written = self.write_changes(conn, OPERATION, None, changes, numbers, commits).await?;
        let WriteOutcome::Obstacles(obstacles) = written else {
            return Err(misuse(OPERATION, "changes outside a step transaction were treated as part of one"));
        };
        let moved: Vec<SagaId> = obstacles.iter().filter_map(Obstacle::moved).collect();
        let behind = |error| commits.failed_behind(error);
        let mut rows = match moved.as_slice() {
            [] => Vec::new(),
            moved => self.sagas_on(conn, OPERATION, moved).await.map_err(behind)?,
        };
        let mut taken = self.key_holders(conn, changes, &obstacles).await.map_err(behind)?;
        let mut applied: Vec<Applied> = changes.iter().map(|_| Ok(())).collect();
        for Obstacle { change, kind } in obstacles {
            let miss = match kind {
                ObstacleKind::Work(id) => Miss::Work(id),
                ObstacleKind::Late(work, output) => Miss::Late { work, output },
                ObstacleKind::Record(step) => Miss::Record(StepId::from_stored(&step)),
                ObstacleKind::NoSaga(saga) => Miss::NoSaga(SagaId(saga)),
                ObstacleKind::KeyTaken => match taken.remove(&change) {
                    Some(known) => Miss::Saga(Box::new(known)),
                    // The saga was deleted in between, so its key is new now.
                    None => {
                        match Box::pin(self.record_on(conn, &changes[change..=change], numbers, commits)).await?.pop() {
                            Some(Err(miss)) => miss,
                            _ => continue,
                        }
                    }
                },
                ObstacleKind::Saga(saga) => match rows.iter().position(|row| row.id.0 == saga) {
                    Some(index) => Miss::Saga(Box::new(rows.swap_remove(index))),
                    // It was deleted in between.
                    None => Miss::NoSaga(SagaId(saga)),
                },
            };
            // A lost row takes precedence over a late success of another row.
            match applied.get_mut(change) {
                Some(answer @ Ok(())) => *answer = Err(miss),
                Some(answer @ Err(Miss::Late { .. })) if matches!(miss, Miss::Work(_)) => *answer = Err(miss),
                _ => {}
            }
        }
        Ok(applied)
    }

    /// The sagas that have the keys under which changes were to start sagas.
    async fn key_holders(
        &self,
        conn: &mut PgConnection,
        changes: &[Changes],
        obstacles: &[Obstacle],
    ) -> Result<HashMap<usize, SagaRow>, StoreError> {
        let taken = obstacles.iter().filter(|obstacle| matches!(obstacle.kind, ObstacleKind::KeyTaken));
        let starts: Vec<(usize, &NewSaga)> = taken
            .filter_map(|obstacle| Some((obstacle.change, changes.get(obstacle.change)?.start.as_deref()?)))
            .collect();
        let known = self.known_sagas(conn, OPERATION, starts.iter().map(|(_, saga)| *saga)).await?;
        let holder = |saga: &NewSaga| known.iter().find(|row| row.tenant == saga.tenant && row.key == saga.key);
        Ok(starts.iter().filter_map(|(change, saga)| Some((*change, holder(saga)?.clone()))).collect())
    }
}

impl Obstacle {
    /// The saga that had moved.
    pub(crate) fn moved(&self) -> Option<SagaId> {
        match self.kind {
            ObstacleKind::Saga(saga) => Some(SagaId(saga)),
            _ => None,
        }
    }
}
