//! Step records, and decisions outside a step transaction.

use async_trait::async_trait;
use rusqlite::OptionalExtension as _;
use saga_core::key::{Key, Tenant};
use saga_core::store::{Applied, Changes, Records, StepId, StepRecord, StoreError};

use crate::error::{Failure, misuse};
use crate::statements::changes::{Check, check, refuse_duplicate_changes, write};
use crate::statements::rows::{self, FromRow, select_records};
use crate::store::store::SqliteStore;
use crate::writer::session::Session;

#[async_trait]
impl Records for SqliteStore {
    async fn record(&self, changes: Vec<Changes>) -> Result<Vec<Applied>, StoreError> {
        refuse_duplicate_changes("record", &changes)?;
        self.call("record", move |session| changes.iter().map(|change| apply(session, change)).collect()).await
    }

    async fn record_of(&self, tenant: &Tenant, key: &Key, step: &StepId) -> Result<Option<StepRecord>, StoreError> {
        let (tenant, key, step) = (tenant.clone(), key.clone(), step.clone());
        self.query("record_of", move |conn| {
            conn.prepare_cached(select_records!("WHERE tenant = ?1 AND key = ?2 AND step = ?3"))?
                .query_row((tenant.as_str(), key.as_str(), step.as_str()), StepRecord::from_row)
                .optional()
        })
        .await
    }

    async fn records_of(&self, tenant: &Tenant, key: &Key) -> Result<Vec<StepRecord>, StoreError> {
        let (tenant, key) = (tenant.clone(), key.clone());
        self.query("records_of", move |conn| rows::records_of(conn, tenant.as_str(), key.as_str())).await
    }

    async fn records_of_steps(&self, tenant: &Tenant, key: &Key) -> Result<Vec<StepRecord>, StoreError> {
        let (tenant, key) = (tenant.clone(), key.clone());
        self.query("records_of_steps", move |conn| rows::records_of_steps(conn, tenant.as_str(), key.as_str())).await
    }
}

fn apply(session: &mut Session, change: &Changes) -> Result<Applied, Failure> {
    let now = session.now();
    match check(&session.conn, change)? {
        Check::Missed(miss) => Ok(Err(miss)),
        Check::Clear(progress) => match write(session, change, progress, now)? {
            Ok(()) => Ok(Ok(())),
            // The check passed on the same rows, so only a change that contradicts itself fails here, after a part of
            // it was written.
            Err(obstacle) => Err(Failure::Half(misuse("record", obstacle))),
        },
    }
}
