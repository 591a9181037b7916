//! Requests that take effect once.

use std::time::Duration;

use async_trait::async_trait;
use rusqlite::Connection;
use saga_core::store::{Admission, IdempotencyKey, IdempotencyKeys, KeyedBody, KeyedRequest, StoreError};
use tokio::sync::oneshot;

use crate::clock::plus;
use crate::error::writer_ended;
use crate::statements::kept_requests::{Kept, columns, keep, look_up};
use crate::statements::keyed_job::{Keyed, OPERATION};
use crate::statements::rows::{limit, signed};
use crate::store::store::SqliteStore;

#[async_trait]
impl IdempotencyKeys for SqliteStore {
    /// The writer polls the body on its own thread and runs no other call meanwhile, so the body must not wait for
    /// anything slow. It shares its commit with other calls, and may run several times.
    async fn run_once(
        &self,
        request: Option<KeyedRequest>,
        body: Box<dyn KeyedBody<Connection>>,
    ) -> Result<Admission<()>, StoreError> {
        let _held = self.shared().clock.hold();
        let (reply, answer) = oneshot::channel();
        self.send(OPERATION, Box::new(Keyed::new(request, body, reply)))?;
        answer.await.unwrap_or_else(|_| Err(writer_ended(OPERATION)))
    }

    async fn claim_key(&self, request: &KeyedRequest, lease_ttl: Duration) -> Result<Admission<u64>, StoreError> {
        let request = request.clone();
        self.call("claim_key", move |session| {
            let now = session.now();
            let answer = look_up(&session.conn, &request, now)?;
            if let Admission::Granted(epoch) = answer {
                keep(&session.conn, &request, (epoch, now), Kept::Leased(plus(now, lease_ttl)))?;
            }
            Ok(answer)
        })
        .await
    }

    async fn complete_key(&self, key: &IdempotencyKey, epoch: u64, response: &[u8]) -> Result<bool, StoreError> {
        let (key, response) = (key.clone(), response.to_vec());
        self.call("complete_key", move |session| {
            let sql = "UPDATE saga_idempotency_keys SET leased_until = NULL, response = ?5 \
                 WHERE tenant = ?1 AND principal = ?2 AND key = ?3 AND epoch = ?4 AND response IS NULL";
            let (tenant, principal, text) = columns(&key);
            let values = (tenant, principal, text, signed(epoch), &response);
            Ok(session.conn.prepare_cached(sql)?.execute(values)? == 1)
        })
        .await
    }

    async fn release_key(&self, key: &IdempotencyKey, epoch: u64) -> Result<bool, StoreError> {
        let key = key.clone();
        self.call("release_key", move |session| {
            let sql = "DELETE FROM saga_idempotency_keys \
                 WHERE tenant = ?1 AND principal = ?2 AND key = ?3 AND epoch = ?4 AND response IS NULL";
            let (tenant, principal, text) = columns(&key);
            Ok(session.conn.prepare_cached(sql)?.execute((tenant, principal, text, signed(epoch)))? == 1)
        })
        .await
    }
}

impl SqliteStore {
    /// Deletes keys whose time to live is over.
    pub(crate) async fn forget_keys(&self, limit_of_rows: usize) -> Result<u64, StoreError> {
        self.call("delete_expired_keys", move |session| {
            let sql = "DELETE FROM saga_idempotency_keys WHERE rowid IN (SELECT rowid FROM saga_idempotency_keys \
                 WHERE expires_at <= ?1 AND (leased_until IS NULL OR leased_until <= ?1) ORDER BY expires_at LIMIT ?2)";
            let deleted = session.conn.prepare_cached(sql)?.execute((session.now().0, limit(limit_of_rows)))?;
            Ok(deleted as u64)
        })
        .await
    }
}
