//! Orders that move to the second version at each boundary of the first, on SQLite: whatever crashes and whatever fails,
//! an order is confirmed with its pieces taken, or nothing of it is left.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use order_versions::{Bank, Order, TABLES, to_second, version_1, version_2};
use rusqlite::Connection;
use saga_core::{Migration, Saga, engine::RuntimeBuilder};
use saga_sqlite::{SqliteOptions, SqliteStore, Synchronous};
use saga_testkit::VirtualTime;
use saga_testkit::explore::{Ended, Explore, Explored, Refusal, explore};
use tempfile::TempDir;

struct Moving {
    /// A shop that nothing has happened in: each run has a copy of it.
    empty: PathBuf,
}

struct World {
    file: PathBuf,
    store: SqliteStore,
    bank: Bank,
    _folder: TempDir,
}

/// What ends here is a process, and never the machine.
async fn open(file: &Path, time: &VirtualTime) -> SqliteStore {
    let options = SqliteOptions::new(file).synchronous(Synchronous::Normal).test_clock(time.environment());
    SqliteStore::open_with(options).await.unwrap_or_else(|error| panic!("{error}"))
}

#[async_trait]
impl Explore for Moving {
    type Store = SqliteStore;
    type Input = Order;
    type World = World;

    fn saga(&self) -> Saga<SqliteStore, Order> {
        version_1().unwrap_or_else(|error| panic!("{error}"))
    }

    fn input(&self) -> Order {
        Order { key: "order-1".to_owned(), pieces: 3 }
    }

    async fn fresh(&self, time: &VirtualTime) -> World {
        let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
        let file = folder.path().join("orders.db");
        std::fs::copy(&self.empty, &file).unwrap_or_else(|error| panic!("{error}"));
        let bank = Bank::default();
        bank.open();
        World { store: open(&file, time).await, file, bank, _folder: folder }
    }

    fn store(&self, world: &World) -> Arc<SqliteStore> {
        Arc::new(world.store.clone())
    }

    fn states(
        &self,
        world: &World,
        runtime: RuntimeBuilder<Explored<SqliteStore>>,
    ) -> RuntimeBuilder<Explored<SqliteStore>> {
        runtime.state(world.bank.clone())
    }

    fn migration(&self) -> Option<Migration<SqliteStore>> {
        let version_2 = version_2().unwrap_or_else(|error| panic!("{error}"));
        Some(to_second(&self.saga(), &version_2).unwrap_or_else(|error| panic!("{error}")))
    }

    async fn audit(&self, world: &World, ended: &Ended) -> Result<(), String> {
        let shop = Connection::open(&world.file).map_err(|error| error.to_string())?;
        let count = |query| shop.query_one(query, [], |row| row.get::<_, u32>(0)).map_err(|error| error.to_string());
        let found = (count("SELECT pieces FROM stock")?, count("SELECT count(*) FROM orders")?);
        let expected = if *ended == Ended::Completed { (7, 1) } else { (10, 0) };
        if found == expected { Ok(()) } else { Err(format!("{ended:?}, and pieces and orders are {found:?}")) }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_moves_at_any_boundary_or_says_why_not() {
    let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let empty = folder.path().join("empty.db");
    let tables = Connection::open(&empty).and_then(|shop| shop.execute_batch(TABLES));
    tables.unwrap_or_else(|error| panic!("{error}"));
    open(&empty, &VirtualTime::new()).await.close().await;
    let report = explore(Moving { empty }).await.unwrap_or_else(|failures| panic!("{failures}"));
    println!("{report}");
    let Some(moves) = report.moves() else { panic!("{report}") };
    let reason = |point: &str| {
        let is_it = |unmoved: &&Refusal| unmoved.point == format!("moved after a crash {point}");
        moves.unmoved().iter().find(is_it).map(|unmoved| unmoved.reason.as_str())
    };
    for boundary in ["behind the transaction of take-stock", "before charge-card", "behind charge-card"] {
        assert_eq!(reason(boundary), None, "{moves:#?}");
    }
    // The stock is taken by another name there, and a confirmed order is past its carrier.
    for (boundary, said) in [
        ("behind take-stock", "its key goes with its name"),
        ("before take-stock:undo, while charge-card rejects", "its key goes with its name"),
        ("behind the record of charge-card as done", "`book-carrier`, which comes before it in the other version"),
    ] {
        assert!(reason(boundary).is_some_and(|reason| reason.contains(said)), "{boundary}: {moves:#?}");
    }
}
