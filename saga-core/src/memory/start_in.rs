use std::sync::Arc;

use async_trait::async_trait;

use super::conn::{MemoryConn, TxState};
use super::data::{Data, saga_row};
use super::locks::{Lock, TxId};
use super::{MemoryConflict, MemoryStore};
use crate::store::{NewSaga, SagaId, StartIn, Started, StoreError, StoreErrorKind, WorkId};

/// A transaction that the application opened itself. Dropping it rolls it back.
#[derive(Debug)]
pub struct MemoryTransaction {
    conn: MemoryConn,
}

impl MemoryStore {
    /// Opens a transaction for the application's own writes; a saga can be started in it.
    pub fn transaction(&self) -> MemoryTransaction {
        MemoryTransaction { conn: MemoryConn::begin(&self.shared) }
    }
}

impl MemoryTransaction {
    /// The connection.
    pub fn conn(&mut self) -> &mut MemoryConn {
        &mut self.conn
    }

    /// Commits.
    ///
    /// # Errors
    /// When a write met a conflict, or the transaction was ended: then nothing is committed.
    pub fn commit(self) -> Result<(), MemoryConflict> {
        if self.conn.state != TxState::Open {
            return Err(MemoryConflict { row: String::new() });
        }
        self.conn.commit(|_, _| ());
        Ok(())
    }
}

#[async_trait]
impl StartIn for MemoryStore {
    async fn start_in(&self, conn: &mut MemoryConn, saga: NewSaga) -> Result<Started, StoreError> {
        let refuse = |kind, detail: &str| Err(StoreError::new(kind, "start_in", detail));
        match conn.state {
            TxState::Open if Arc::ptr_eq(&conn.shared, &self.shared) => {}
            TxState::Open => return refuse(StoreErrorKind::Misuse, "the connection is one of another store"),
            TxState::Ended => return refuse(StoreErrorKind::Misuse, "the connection is not in a transaction"),
            TxState::Doomed => return refuse(StoreErrorKind::Conflict, "the transaction met a conflict before"),
        }
        let same_key = |own: &&NewSaga| own.tenant == saga.tenant && own.key == saga.key;
        if let Some(own) = conn.starts.iter().find(same_key) {
            return Ok(Started::Known(Box::new(saga_row(own, self.shared.now()))));
        }
        let mut saga = saga;
        let tx = conn.tx;
        let started = self.shared.when_unlocked(|data, _| take_key(data, &mut saga, tx)).await?;
        if matches!(started, Started::New) {
            conn.starts.push(saga);
        }
        Ok(started)
    }
}

/// Holds the key and gives the saga its ids, unless the key is taken.
fn take_key(data: &mut Data, saga: &mut NewSaga, me: TxId) -> Option<Result<Started, StoreError>> {
    let lock = Lock::Key(saga.tenant.clone(), saga.key.clone());
    if let Some(holder) = data.locks.holder(&lock, Some(me)) {
        if data.locks.is_waiting(holder) {
            let detail = "two transactions wait for each other";
            return Some(Err(StoreError::new(StoreErrorKind::Conflict, "start_in", detail)));
        }
        data.locks.wait(me);
        return None;
    }
    data.locks.go_on(me);
    if let Some(known) = data.saga_of(&saga.tenant, &saga.key) {
        return Some(Ok(Started::Known(Box::new(known.row.clone()))));
    }
    data.locks.take(lock, me);
    data.ids += 1;
    saga.id = SagaId(data.ids);
    for command in &mut saga.commands {
        data.ids += 1;
        command.id = WorkId(data.ids);
        command.saga = saga.id;
    }
    Some(Ok(Started::New))
}
