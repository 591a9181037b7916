//! The connection that steps take.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::shared::Shared;
use super::tables::data::Data;
use super::tables::locks::{Lock, TxId};
use super::tables::table::as_counter;
use crate::store::{NewMessage, NewSaga, Timestamp};

/// The connection that steps on a [`MemoryStore`](super::MemoryStore) take by `&mut`: a table of named values and a log.
///
/// It reads committed values and the writes of its own transaction. A write to a row that another open transaction
/// wrote fails, and with it the whole transaction, like a serialization failure; the runtime tries it again. Writes
/// that are not committed when the transaction ends are gone.
pub struct MemoryConn {
    pub(super) shared: Arc<Shared>,
    pub(super) tx: TxId,
    pub(super) state: TxState,
    writes: BTreeMap<String, Write>,
    /// What each write replaced, to roll back to a savepoint.
    undo: Vec<(String, Option<Write>)>,
    log: Vec<Vec<u8>>,
    pub(super) starts: Vec<NewSaga>,
    pub(super) messages: Vec<NewMessage>,
}

/// The new value of a row; `None` deletes it.
type Write = Option<Vec<u8>>;

/// Whether a transaction can still commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TxState {
    Open,
    /// A write met a conflict.
    Conflicted,
    /// The holder of the connection ended its transaction.
    Ended,
}

/// Another open transaction wrote this row; or the transaction met such a conflict before, or has ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("could not write {row:?}: another transaction holds it, or this one cannot commit any more")]
pub struct MemoryConflict {
    /// The row.
    pub row: String,
}

/// A point in a transaction to roll back to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Savepoint {
    undo: usize,
    log: usize,
    starts: usize,
    messages: usize,
}

impl MemoryConn {
    /// The value of that name, as it is committed or as this transaction wrote it.
    pub fn get(&self, name: &str) -> Option<Vec<u8>> {
        match self.writes.get(name) {
            Some(own) => own.clone(),
            None => self.shared.lock().table.get(name).map(<[u8]>::to_vec),
        }
    }

    /// Writes a value.
    ///
    /// # Errors
    /// [`MemoryConflict`], which the caller passes on: the transaction cannot commit any more.
    pub fn put(&mut self, name: &str, value: impl Into<Vec<u8>>) -> Result<(), MemoryConflict> {
        self.write(name, Some(value.into()))
    }

    /// Deletes a value.
    ///
    /// # Errors
    /// Those of [`put`](Self::put).
    pub fn delete(&mut self, name: &str) -> Result<(), MemoryConflict> {
        self.write(name, None)
    }

    /// The counter of that name, as [`get`](Self::get) reads it. A new counter is 0.
    pub fn counter(&self, name: &str) -> i64 {
        as_counter(self.get(name).as_deref())
    }

    /// Adds to a counter and returns its new value. A value that is no counter counts as 0.
    ///
    /// # Errors
    /// Those of [`put`](Self::put).
    pub fn add(&mut self, name: &str, amount: i64) -> Result<i64, MemoryConflict> {
        // The row is locked before it is read, so that no other transaction's addition is lost.
        self.lock_row(name)?;
        let sum = self.counter(name).wrapping_add(amount);
        self.write(name, Some(sum.to_be_bytes().to_vec()))?;
        Ok(sum)
    }

    /// The number of the transaction, unique in this store.
    pub fn transaction(&self) -> u64 {
        self.tx.0
    }

    /// Appends to the log.
    pub fn log(&mut self, entry: impl Into<Vec<u8>>) {
        self.log.push(entry.into());
    }

    /// Ends the transaction, as a step must not: it cannot commit any more.
    #[doc(hidden)]
    pub fn end_transaction(&mut self) {
        self.state = TxState::Ended;
    }

    pub(super) fn begin(shared: &Arc<Shared>) -> Self {
        let tx = shared.lock().locks.open();
        Self {
            shared: Arc::clone(shared),
            tx,
            state: TxState::Open,
            writes: BTreeMap::new(),
            undo: Vec::new(),
            log: Vec::new(),
            starts: Vec::new(),
            messages: Vec::new(),
        }
    }

    pub(super) fn savepoint(&self) -> Savepoint {
        Savepoint {
            undo: self.undo.len(),
            log: self.log.len(),
            starts: self.starts.len(),
            messages: self.messages.len(),
        }
    }

    pub(super) fn roll_back_to(&mut self, savepoint: Savepoint) {
        self.log.truncate(savepoint.log);
        // Their counters stay locked until the end, which only makes other transactions wait.
        self.messages.truncate(savepoint.messages);
        let mut data = self.shared.lock();
        for saga in self.starts.drain(savepoint.starts..) {
            data.locks.release(&Lock::Key(saga.tenant, saga.key));
        }
        for (name, replaced) in self.undo.drain(savepoint.undo..).rev() {
            if let Some(value) = replaced {
                self.writes.insert(name, value);
            } else {
                self.writes.remove(&name);
                data.locks.release(&Lock::Row(name));
            }
        }
        drop(data);
        self.shared.wake();
    }

    /// Commits the writes, together with those of `also`.
    pub(super) fn commit(mut self, also: impl FnOnce(&mut Data, Timestamp)) {
        let now = self.shared.now();
        let mut data = self.shared.lock();
        for (name, value) in std::mem::take(&mut self.writes) {
            data.table.set(name, value);
        }
        data.table.append_log(&mut self.log);
        for saga in self.starts.drain(..) {
            data.insert_saga(saga, now);
        }
        for message in self.messages.drain(..) {
            data.outbox.publish(message, now);
        }
        also(&mut data, now);
        // The locks are released when the connection is dropped, after the commit.
        drop(data);
    }

    fn write(&mut self, name: &str, value: Write) -> Result<(), MemoryConflict> {
        self.lock_row(name)?;
        let replaced = self.writes.insert(name.to_owned(), value);
        self.undo.push((name.to_owned(), replaced));
        Ok(())
    }

    fn lock_row(&mut self, name: &str) -> Result<(), MemoryConflict> {
        let lock = Lock::Row(name.to_owned());
        let mut data = self.shared.lock();
        if self.state == TxState::Open && data.locks.holder(&lock, Some(self.tx)).is_none() {
            data.locks.take(lock, self.tx);
            return Ok(());
        }
        if self.state == TxState::Open {
            self.state = TxState::Conflicted;
        }
        Err(MemoryConflict { row: name.to_owned() })
    }
}

impl Drop for MemoryConn {
    fn drop(&mut self) {
        self.shared.lock().locks.release_all(self.tx);
        self.shared.wake();
    }
}

impl fmt::Debug for MemoryConn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryConn").field("state", &self.state).finish_non_exhaustive()
    }
}
