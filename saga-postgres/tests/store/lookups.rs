//! A saga, and what operators did, are found by indexes, however many other sagas wait.

use std::time::Duration;

use saga_core::engine::SagaAdmin;
use saga_core::key::{Key, Tenant};
use saga_core::store::{AuditFilter, Sagas as _};
use saga_core::{Runtime, Saga, StepError, saga_step};
use saga_postgres::PostgresStore;
use sqlx::{AssertSqlSafe, Executor as _};

use crate::support::Place;

/// How many rows of other sagas each table has.
const ROWS: i64 = 10_000;

#[saga_step(no_compensation)]
async fn ring(_number: i64) -> Result<(), StepError> {
    Ok(())
}

/// How many rows of work and of history were read until now, by an index or without one.
async fn read(place: &Place, store: &PostgresStore) -> i64 {
    // The pool has one connection, which tells now what it counted.
    store.pool().execute("SELECT pg_stat_force_next_flush()").await.unwrap();
    store.pool().execute("SELECT 1").await.unwrap();
    let sql = "SELECT (SELECT sum(t.seq_tup_read) FROM pg_stat_user_tables t \
             WHERE t.schemaname = $1 AND t.relname IN ('work', 'history'))::bigint \
         + (SELECT sum(i.idx_tup_read) FROM pg_stat_user_indexes i \
             WHERE i.schemaname = $1 AND i.relname IN ('work', 'history'))::bigint";
    sqlx::query_scalar(sql).bind(&place.schema).fetch_one(&mut place.connection().await).await.unwrap()
}

#[tokio::test]
async fn the_rows_of_other_sagas_are_not_read() {
    let place = Place::new().await;
    let store = PostgresStore::connect_with(place.options().connections_max(1)).await.unwrap();
    let saga: Saga<PostgresStore, i64> =
        Saga::named("alarm").input().sleep("rest", Duration::from_hours(1)).step::<ring>().build().unwrap();
    let runtime = Runtime::builder(store.clone()).saga(&saga).start().await.unwrap();
    drop(runtime.start(&saga, "k", 7).await.unwrap());
    runtime.shutdown().await;
    let desk = SagaAdmin::new(store.clone()).saga(&saga).actor("ann");
    desk.control("k").pause("an audit").await.unwrap();
    let fill = format!(
        "INSERT INTO {0}.work (id, saga, tenant, key, kind, step, definition, epoch, due_at) \
         SELECT w.id + n, w.saga + n, w.tenant, w.key, w.kind, w.step, w.definition, w.epoch, w.due_at \
         FROM {0}.work w, generate_series(1, {ROWS}) n; \
         INSERT INTO {0}.history (saga, at, kind, attempt, detail) \
         SELECT n, now(), 'attempt-failed', 1, 'no answer' FROM generate_series(1000000, 1000000 + {ROWS}) n; \
         ANALYZE {0}.work, {0}.history",
        place.schema,
    );
    place.connection().await.execute(AssertSqlSafe(fill)).await.unwrap();
    let (tenant, key) = (Tenant::default(), Key::new("k").unwrap());
    let before = read(&place, &store).await;
    for _ in 0..8 {
        let found = store.saga_with_steps(&tenant, &key).await.unwrap().unwrap();
        assert_eq!((found.work.len(), found.history.len()), (1, 1));
        assert_eq!(store.audit_log(&AuditFilter::default()).await.unwrap().len(), 1);
    }
    let read = read(&place, &store).await - before;
    assert!(read < 100, "{read} of {} rows were read", 2 * ROWS);
    store.close().await;
    place.remove().await;
}
