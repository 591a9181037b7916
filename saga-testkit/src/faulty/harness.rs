use std::time::Duration;

use saga_core::memory::{MemoryConn, MemoryTransaction};

use super::{FaultyStore, FaultyTransport, StoreFlaw, TransportFlaw};
use crate::harness::{Fault, Provokes, StartInHarness, StoreHarness, Timing, TransportHarness};
use crate::memory::{LostAnswer, MemoryHarness};

/// Few rejections are enough to see what becomes of a message.
const REJECTIONS_MAX: u32 = 3;

/// The memory backends with at most one flaw. The store's clock is the harness's.
#[derive(Debug, Clone, Copy, Default)]
pub struct FaultyHarness {
    /// The flaw of the store.
    pub store: Option<StoreFlaw>,
    /// The flaw of the transport.
    pub transport: Option<TransportFlaw>,
}

impl StoreHarness for FaultyHarness {
    type Store = FaultyStore;

    async fn fresh(&self) -> FaultyStore {
        FaultyStore::new(self.store)
    }

    async fn reopen(&self, store: FaultyStore) -> FaultyStore {
        store
    }

    async fn beside(&self, store: &FaultyStore) -> Option<FaultyStore> {
        Some(store.clone())
    }

    async fn write_business(&self, conn: &mut MemoryConn, name: &str, value: i64) -> Result<(), Fault> {
        MemoryHarness.write_business(conn, name, value).await
    }

    async fn read_business(&self, store: &FaultyStore, name: &str) -> Option<i64> {
        MemoryHarness.read_business(&store.inner, name).await
    }

    async fn pass_time(&self, store: &FaultyStore, duration: Duration) {
        store.clock.advance(duration);
    }

    fn timing(&self) -> Timing {
        Timing { lease: Duration::from_secs(30), ..Timing::default() }
    }

    fn provokes(&self) -> Provokes {
        Provokes { ended_transaction: true, unknown_commit: true, hours: true }
    }

    async fn end_transaction(&self, conn: &mut MemoryConn) {
        conn.end_transaction();
    }

    fn doubtful(&self, store: &FaultyStore, commits: bool) -> Option<FaultyStore> {
        let inner = store.inner.clone().with_commit_hook(LostAnswer::new(commits));
        Some(FaultyStore { inner, ..store.clone() })
    }
}

impl StartInHarness for FaultyHarness {
    type Transaction = MemoryTransaction;

    async fn begin(&self, store: &FaultyStore) -> MemoryTransaction {
        store.inner.transaction()
    }

    async fn bare(&self, store: &FaultyStore) -> MemoryTransaction {
        MemoryHarness.bare(&store.inner).await
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

impl TransportHarness for FaultyHarness {
    type Transport = FaultyTransport;

    async fn fresh(&self) -> FaultyTransport {
        FaultyTransport::new(self.transport, REJECTIONS_MAX)
    }

    async fn beside(&self, transport: &FaultyTransport) -> FaultyTransport {
        transport.clone()
    }

    fn rejections_max(&self) -> u32 {
        REJECTIONS_MAX
    }

    async fn limit(&self, transport: &FaultyTransport, subscription: &str, messages: usize) -> bool {
        transport.inner.limit_queue(subscription, messages);
        true
    }

    fn arrival(&self) -> Duration {
        Duration::from_secs(2)
    }

    async fn given_up(&self, transport: &FaultyTransport) -> Option<Vec<Vec<u8>>> {
        Some(transport.inner.dead_lettered().into_iter().map(|given_up| given_up.payload).collect())
    }
}
