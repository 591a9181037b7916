//! Makes tombstones of sagas, or deletes them.

use std::time::Duration;

use saga_core::store::{ExpiredSaga, KeptFor, NextAge, Purged, SagaId, StoreError, StoreErrorKind};
use sqlx::Row as _;

use crate::clock::micros;
use crate::error::{conflict, is_answer_of_server, store_error};
use crate::rows::rows::{self, signed};
use crate::store::store::PostgresStore;

/// How many of the oldest messages in the outbox are compared.
pub(crate) const MESSAGES_MAX: i64 = 1_000;

const OPERATION: &str = "purge";

/// One call of `purge`.
pub(crate) struct PurgeCall<'a> {
    store: &'a PostgresStore,
    epoch: u64,
    retry_interval: Duration,
    purged: Purged,
}

impl<'a> PurgeCall<'a> {
    pub(crate) fn new(store: &'a PostgresStore, epoch: u64, retry_interval: Duration) -> Self {
        Self { store, epoch, retry_interval, purged: Purged::default() }
    }

    /// Purges sagas in one transaction. Where another transaction holds records of one of them, nothing is waited for:
    /// each half is tried for itself, until that saga is left alone.
    pub(crate) async fn purge(mut self, sagas: &[ExpiredSaga]) -> Result<Purged, StoreError> {
        let mut sorted: Vec<&ExpiredSaga> = sagas.iter().collect();
        sorted.sort_unstable_by_key(|saga| saga.id);
        let mut parts: Vec<&[&ExpiredSaga]> = vec![&sorted];
        let mut has_begun = false;
        while let Some(part) = parts.pop() {
            match self.purge_part(part).await {
                Ok(()) => has_begun = true,
                Err(error) if error.kind() != StoreErrorKind::Conflict => return Err(error),
                // Another transaction held a row.
                Err(error) if is_answer_of_server(&error) => {
                    if part.len() > 1 {
                        let (first, second) = part.split_at(part.len() / 2);
                        parts.extend([second, first]);
                    }
                }
                // The lease was lost between two transactions: nothing is said of the sagas that are left.
                Err(_) if has_begun => break,
                Err(error) => return Err(error),
            }
        }
        Ok(self.purged)
    }

    async fn purge_part(&mut self, sagas: &[&ExpiredSaga]) -> Result<(), StoreError> {
        let sql = "SELECT saga, became FROM {schema}.purge_sagas($1, $2, $3, $4, $5, $6)";
        let query = sqlx::query(self.store.sql(sql))
            .bind(signed(self.epoch))
            .bind(sagas.iter().map(|saga| saga.id.0).collect::<Vec<_>>())
            .bind(sagas.iter().map(|saga| signed(saga.version)).collect::<Vec<_>>())
            .bind(sagas.iter().map(|saga| saga.next == NextAge::Tombstone).collect::<Vec<_>>())
            .bind(micros(self.retry_interval))
            .bind(MESSAGES_MAX);
        for row in self.store.call_rows(OPERATION, query).await? {
            let read = || Ok((row.try_get::<Option<i64>, _>(0)?, rows::text(&row, 1)?));
            let (saga, became) = read().map_err(|error| store_error(OPERATION, error))?;
            let saga = SagaId(saga.unwrap_or_default());
            match became {
                "tombstone" => self.purged.tombstones.push(saga),
                "deleted" => self.purged.deleted.push(saga),
                "dead_letter" => self.purged.kept.push((saga, KeptFor::DeadLetter)),
                "outbox" => self.purged.kept.push((saga, KeptFor::Outbox)),
                "unfinished" => self.purged.kept.push((saga, KeptFor::Unfinished)),
                _ => return Err(conflict(OPERATION, "another process has the lease of the maintenance task")),
            }
        }
        Ok(())
    }
}
