//! The harness of the memory store: the reference for other harnesses.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use saga_core::env::BoxFuture;
use saga_core::memory::{
    CommitFate, CommitHook, CommitPoint, MemoryConn, MemoryStore, MemoryTransaction, MemoryTransport,
};

use crate::harness::{Fault, Provokes, StartInHarness, StoreHarness, TransportHarness};

/// How often the transport delivers a message again.
const REJECTIONS_MAX: u32 = 3;

/// The memory store on the machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct MemoryHarness;

impl StoreHarness for MemoryHarness {
    type Store = MemoryStore;

    async fn fresh(&self) -> MemoryStore {
        MemoryStore::new().with_hints()
    }

    async fn reopen(&self, store: MemoryStore) -> MemoryStore {
        store
    }

    async fn beside(&self, store: &MemoryStore) -> Option<MemoryStore> {
        Some(store.clone())
    }

    async fn write_business(&self, conn: &mut MemoryConn, name: &str, value: i64) -> Result<(), Fault> {
        Ok(conn.put(name, value.to_be_bytes())?)
    }

    async fn read_business(&self, store: &MemoryStore, name: &str) -> Option<i64> {
        store.read(|table| table.get(name).map(|_| table.counter(name)))
    }

    fn provokes(&self) -> Provokes {
        Provokes { ended_transaction: true, unknown_commit: true, hours: false }
    }

    async fn end_transaction(&self, conn: &mut MemoryConn) {
        conn.end_transaction();
    }

    fn doubtful(&self, store: &MemoryStore, commits: bool) -> Option<MemoryStore> {
        Some(store.clone().with_commit_hook(LostAnswer::new(commits)))
    }
}

impl StartInHarness for MemoryHarness {
    type Transaction = MemoryTransaction;

    async fn begin(&self, store: &MemoryStore) -> MemoryTransaction {
        store.transaction()
    }

    async fn bare(&self, store: &MemoryStore) -> MemoryTransaction {
        let mut transaction = store.transaction();
        transaction.conn().end_transaction();
        transaction
    }

    fn conn<'a>(&self, transaction: &'a mut MemoryTransaction) -> &'a mut MemoryConn {
        transaction.conn()
    }

    async fn commit(&self, transaction: MemoryTransaction) -> Result<(), Fault> {
        Ok(transaction.commit()?)
    }

    async fn roll_back(&self, transaction: MemoryTransaction) {
        drop(transaction);
    }
}

/// Loses the answer to the first commit.
pub(crate) struct LostAnswer {
    commits: bool,
    is_lost: AtomicBool,
}

impl LostAnswer {
    /// On a commit that takes place, or does not.
    pub(crate) fn new(commits: bool) -> Arc<Self> {
        Arc::new(Self { commits, is_lost: AtomicBool::new(false) })
    }
}

impl CommitHook for LostAnswer {
    fn at(&self, point: CommitPoint) -> BoxFuture<'static, CommitFate> {
        let is_here = match point {
            CommitPoint::Committing(_) => !self.commits,
            CommitPoint::Committed(_) => self.commits,
            _ => false,
        };
        let fate = if is_here && !self.is_lost.swap(true, Ordering::Relaxed) {
            CommitFate::InDoubt
        } else {
            CommitFate::Proceed
        };
        Box::pin(async { fate })
    }
}

impl TransportHarness for MemoryHarness {
    type Transport = MemoryTransport;

    async fn fresh(&self) -> MemoryTransport {
        MemoryTransport::new().with_rejections_max(REJECTIONS_MAX)
    }

    async fn beside(&self, transport: &MemoryTransport) -> MemoryTransport {
        transport.clone()
    }

    fn rejections_max(&self) -> u32 {
        REJECTIONS_MAX
    }

    async fn limit(&self, transport: &MemoryTransport, subscription: &str, messages: usize) -> bool {
        transport.limit_queue(subscription, messages);
        true
    }

    async fn given_up(&self, transport: &MemoryTransport) -> Option<Vec<Vec<u8>>> {
        Some(transport.dead_lettered().into_iter().map(|given_up| given_up.payload).collect())
    }
}
