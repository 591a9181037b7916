//! G5: a deployment without its migration undoes nothing.

use saga_core::engine::SagaStatus;
use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::store::{Failing, SagaFilter, Status, StoreError};
use saga_core::{Runtime, Saga, StepContext, StepError, saga_compensation, saga_step};
use saga_postgres::PostgresStore;
use saga_sqlite::SqliteStore;
use saga_tests::{Books, Warnings, eventually, quick};

use crate::guarantees::is_completed;

/// A store whose business lacks a table until it is migrated.
trait Parcels: Books {
    /// Inserts a row into the table.
    fn insert(conn: &mut Self::Conn, key: &str) -> impl Future<Output = Result<(), StepError>> + Send;

    /// Creates the table, as the migration of the deployment would.
    fn create_table(&self) -> impl Future<Output = ()> + Send;
}

impl Parcels for MemoryStore {
    async fn insert(conn: &mut MemoryConn, key: &str) -> Result<(), StepError> {
        if conn.get("parcels").is_none() {
            return Err(StepError::retry("no such table: parcels"));
        }
        conn.put(key, "packed")?;
        Ok(())
    }

    async fn create_table(&self) {
        let mut transaction = self.transaction();
        transaction.conn().put("parcels", "created").unwrap();
        transaction.commit().unwrap();
    }
}

impl Parcels for SqliteStore {
    async fn insert(conn: &mut rusqlite::Connection, key: &str) -> Result<(), StepError> {
        conn.execute("INSERT INTO parcels VALUES (?1)", [key])?;
        Ok(())
    }

    async fn create_table(&self) {
        let create = |conn: &mut rusqlite::Connection| -> Result<(), StoreError> {
            conn.execute_batch("CREATE TABLE parcels (key TEXT PRIMARY KEY)").unwrap();
            Ok(())
        };
        self.write(create).await.unwrap();
    }
}

impl Parcels for PostgresStore {
    async fn insert(conn: &mut sqlx::PgConnection, key: &str) -> Result<(), StepError> {
        sqlx::query("INSERT INTO parcels VALUES ($1)").bind(key).execute(conn).await?;
        Ok(())
    }

    async fn create_table(&self) {
        sqlx::query("CREATE TABLE parcels (key text PRIMARY KEY)").execute(self.pool()).await.unwrap();
    }
}

#[saga_step(compensate = give_back)]
async fn take<S: Parcels>(conn: &mut S::Conn, _order: u32) -> Result<(), StepError> {
    S::add(conn, "taken", 1).await?;
    Ok(())
}

#[saga_compensation]
async fn give_back<S: Parcels>(conn: &mut S::Conn, _order: u32) -> Result<(), StepError> {
    S::add(conn, "given back", 1).await?;
    Ok(())
}

/// Its pauses are short, so that the test does not wait for them; all else is the default.
#[saga_step(no_compensation, retry(base = "1ms", cap = "20ms"))]
async fn pack<S: Parcels>(conn: &mut S::Conn, ctx: &StepContext, _order: u32) -> Result<(), StepError> {
    S::insert(conn, ctx.key()).await
}

async fn g5_a_missing_table_undoes_nothing<S: Parcels>() {
    let (store, _kept) = <S as Books>::fresh().await;
    let order: Saga<S, u32> = Saga::named("order").input().step::<take>().step::<pack>().build().unwrap();
    let runtime = Runtime::builder(store.clone()).saga(&order).settings(quick).start().await.unwrap();
    let mut running = Vec::new();
    for number in 0..3 {
        running.push(runtime.start(&order, format!("order-{number}"), number).await.unwrap());
    }

    let failing = SagaFilter { failing: Some(Failing::DEFAULT), ..SagaFilter::default() };
    let query = runtime.admin().query();
    let listed = eventually("the failing sagas are listed", async || {
        let sagas = query.list(failing.clone()).await.unwrap();
        (sagas.len() == 3).then_some(sagas)
    })
    .await;
    for saga in listed {
        assert_eq!(saga.status, Status::Running);
        let SagaStatus { steps, .. } = query.status(&saga.key).await.unwrap().unwrap();
        let pack = steps.iter().find(|step| step.step == "pack").unwrap();
        assert!(pack.failing && pack.attempts >= 10, "{pack:?}");
        let error = pack.error.as_deref().unwrap_or_default();
        assert!(error.contains("parcels"), "the words of the database: {error}");
    }
    assert_eq!((store.counter("taken").await, store.counter("given back").await), (3, 0));

    store.create_table().await;
    for running in running {
        let outcome = running.outcome().await.unwrap();
        assert!(is_completed(&outcome), "{outcome}");
    }
    assert_eq!((store.counter("taken").await, store.counter("given back").await), (3, 0));
    assert!(query.list(failing).await.unwrap().is_empty());
    runtime.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_failing_step_is_warned_of_at_its_tenth_attempt() {
    let warnings = Warnings::default();
    let _guard = tracing::subscriber::set_default(warnings.clone());
    let store = MemoryStore::new();
    let order: Saga<MemoryStore, u32> = Saga::named("order").input().step::<pack>().build().unwrap();
    let runtime = Runtime::builder(store.clone()).saga(&order).settings(quick).start().await.unwrap();
    let running = runtime.start(&order, "order-1", 1).await.unwrap();
    let seen = eventually("the warning", async || {
        let seen = warnings.of("step is failing");
        (!seen.is_empty()).then_some(seen)
    })
    .await;
    assert!(seen[0].contains("attempt=10") && seen[0].contains("no such table: parcels"), "{seen:?}");
    store.create_table().await;
    assert!(is_completed(&running.outcome().await.unwrap()));
    runtime.shutdown().await;
}

saga_tests::on_every_store! {
    g5_a_missing_table_undoes_nothing,
}
