//! Transactions of the application, in which it starts sagas and publishes events.

use std::sync::Arc;

use async_trait::async_trait;

use crate::memory::conn::{MemoryConn, TxState};
use crate::memory::tables::data::Data;
use crate::memory::tables::locks::{Lock, TxId};
use crate::memory::{MemoryConflict, MemoryStore};
use crate::store::{NewMessage, NewSaga, SagaId, SagaRow, StartIn, Started, StoreError, StoreErrorKind, WorkId};

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
    /// When a write met a conflict, or the transaction was ended. Nothing is committed then.
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
        self.check_open(conn, "start_in")?;
        let same_key = |own: &&NewSaga| own.tenant == saga.tenant && own.key == saga.key;
        if let Some(own) = conn.starts.iter().find(same_key) {
            return Ok(Started::AlreadyExists(Box::new(SagaRow::started(own, self.shared.now()))));
        }
        let mut saga = saga;
        let tx = conn.tx;
        let started = self.shared.when_unlocked(|data, _| take_key(data, &mut saga, tx)).await?;
        if matches!(started, Started::New) {
            conn.starts.push(saga);
        }
        Ok(started)
    }

    async fn publish_in(&self, conn: &mut MemoryConn, message: NewMessage) -> Result<(), StoreError> {
        self.check_open(conn, "publish_in")?;
        let key = (message.tenant.clone(), message.aggregate_type.clone(), message.aggregate_id.clone());
        let lock = Lock::Counter(key.clone());
        let tx = conn.tx;
        let published = self.shared.when_unlocked(|data, _| {
            let held = hold(data, &lock, tx, "publish_in")?;
            Some(held.map(|()| data.outbox.published(&key)))
        });
        let published = published.await?;
        let is_same =
            |own: &&NewMessage| (&own.tenant, &own.aggregate_type, &own.aggregate_id) == (&key.0, &key.1, &key.2);
        let own = conn.messages.iter().filter(is_same).count() as u64;
        conn.messages.push(NewMessage { position: published + own + 1, ..message });
        Ok(())
    }
}

impl MemoryStore {
    fn check_open(&self, conn: &MemoryConn, operation: &'static str) -> Result<(), StoreError> {
        let refuse = |kind, detail: &str| Err(StoreError::new(kind, operation, detail));
        match conn.state {
            TxState::Open if Arc::ptr_eq(&conn.shared, &self.shared) => Ok(()),
            TxState::Open => refuse(StoreErrorKind::Misuse, "the connection is one of another store"),
            TxState::Ended => refuse(StoreErrorKind::Misuse, "the connection is not in a transaction"),
            TxState::Conflicted => refuse(StoreErrorKind::Conflict, "the transaction met a conflict before"),
        }
    }
}

/// Takes a lock. `None` while another transaction holds it.
fn hold(data: &mut Data, lock: &Lock, me: TxId, operation: &'static str) -> Option<Result<(), StoreError>> {
    if let Some(holder) = data.locks.holder(lock, Some(me)) {
        if data.locks.is_waiting(holder) {
            let detail = "two transactions wait for each other";
            return Some(Err(StoreError::new(StoreErrorKind::Conflict, operation, detail)));
        }
        data.locks.wait(me);
        return None;
    }
    data.locks.stop_waiting(me);
    data.locks.take(lock.clone(), me);
    Some(Ok(()))
}

/// Locks the key and gives the saga its ids, unless the key is taken.
fn take_key(data: &mut Data, saga: &mut NewSaga, me: TxId) -> Option<Result<Started, StoreError>> {
    let lock = Lock::Key(saga.tenant.clone(), saga.key.clone());
    if let Err(error) = hold(data, &lock, me, "start_in")? {
        return Some(Err(error));
    }
    if let Some(known) = data.saga_of(&saga.tenant, &saga.key) {
        let known = Box::new(known.row.clone());
        data.locks.release(&lock);
        return Some(Ok(Started::AlreadyExists(known)));
    }
    data.ids += 1;
    saga.id = SagaId(data.ids);
    for command in &mut saga.commands {
        data.ids += 1;
        command.id = WorkId(data.ids);
        command.saga = saga.id;
    }
    Some(Ok(Started::New))
}
