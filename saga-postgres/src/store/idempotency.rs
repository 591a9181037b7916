//! Requests that take effect once.

use std::time::Duration;

use async_trait::async_trait;
use saga_core::store::{Admission, IdempotencyKey, IdempotencyKeys, KeyedBody, KeyedRequest, StoreError};
use sqlx::{PgConnection, Row as _};

use crate::clock::micros;
use crate::error::store_error;
use crate::requests::admission::{admission, unanswered};
use crate::requests::keyed_transaction::{self, OPERATION};
use crate::rows::rows;
use crate::store::store::PostgresStore;

#[async_trait]
impl IdempotencyKeys for PostgresStore {
    /// It runs in its own task, which ends even if the caller is dropped. The key is locked by an advisory lock of the
    /// transaction, and the response is inserted before the commit.
    ///
    /// The body must not begin a transaction on its connection, since its commit would be that of the whole: the server
    /// refuses it. Savepoints by SQL work.
    async fn run_once(
        &self,
        request: Option<KeyedRequest>,
        body: Box<dyn KeyedBody<PgConnection>>,
    ) -> Result<Admission<()>, StoreError> {
        let store = self.clone();
        let _held = self.shared().options.clock.hold();
        Self::spawn_detached(OPERATION, async move { keyed_transaction::run(&store, request, body).await }).await
    }

    async fn claim_key(&self, request: &KeyedRequest, lease_ttl: Duration) -> Result<Admission<u64>, StoreError> {
        let sql = "SELECT verdict, new_epoch, kept FROM {schema}.admit_request($1, $2, $3, $4, $5, $6)";
        let query = sqlx::query(self.sql(sql))
            .bind(request.key.tenant().as_str().to_owned())
            .bind(request.key.principal().to_owned())
            .bind(request.key.as_str().to_owned())
            .bind(request.fingerprint.to_vec())
            .bind(micros(request.ttl))
            .bind(micros(lease_ttl));
        let admitted = self.call_rows("claim_key", query).await?;
        let row = admitted.first().ok_or_else(|| unanswered("claim_key"))?;
        admission(row).map_err(|error| store_error("claim_key", error))
    }

    async fn complete_key(&self, key: &IdempotencyKey, epoch: u64, response: &[u8]) -> Result<bool, StoreError> {
        self.end_lease("complete_key", key, epoch, Some(response.to_vec())).await
    }

    async fn release_key(&self, key: &IdempotencyKey, epoch: u64) -> Result<bool, StoreError> {
        self.end_lease("release_key", key, epoch, None).await
    }
}

impl PostgresStore {
    /// Deletes keys whose time to live is over.
    pub(crate) async fn forget_keys(&self, limit: usize) -> Result<u64, StoreError> {
        // The time is read once: compared with a function that may change, the index would be read to its end.
        let sql = "DELETE FROM {schema}.idempotency_keys WHERE ctid = ANY (ARRAY(SELECT k.ctid \
             FROM {schema}.idempotency_keys k WHERE k.expires_at <= (SELECT clock_timestamp()) \
             AND coalesce(k.leased_until <= clock_timestamp(), true) ORDER BY k.expires_at LIMIT $1 \
             FOR UPDATE SKIP LOCKED))";
        self.execute("delete_expired_keys", sqlx::query(self.sql(sql)).bind(rows::limit(limit))).await
    }
}

impl PostgresStore {
    async fn end_lease(
        &self,
        operation: &'static str,
        key: &IdempotencyKey,
        epoch: u64,
        response: Option<Vec<u8>>,
    ) -> Result<bool, StoreError> {
        let query = sqlx::query(self.sql("SELECT {schema}.end_key_lease($1, $2, $3, $4, $5)"))
            .bind(key.tenant().as_str().to_owned())
            .bind(key.principal().to_owned())
            .bind(key.as_str().to_owned())
            .bind(rows::signed(epoch))
            .bind(response);
        let ended = self.call_rows(operation, query).await?;
        let row = ended.first().ok_or_else(|| unanswered(operation))?;
        row.try_get(0).map_err(|error| store_error(operation, error))
    }
}
