//! What is kept for a time only is found by an index, and what is kept longer is not read.

use std::time::Duration;

use saga_core::store::{Inbox as _, Purge as _};
use saga_postgres::PostgresStore;
use sqlx::{AssertSqlSafe, Executor as _};

use crate::support::Place;

/// How many rows each table has. None of them is due.
const ROWS: i64 = 10_000;

/// How many rows of these tables were read until now, by an index or without one.
async fn read(place: &Place, store: &PostgresStore) -> i64 {
    // The pool has one connection, which tells now what it counted.
    store.pool().execute("SELECT pg_stat_force_next_flush()").await.unwrap();
    store.pool().execute("SELECT 1").await.unwrap();
    let sql = "SELECT (sum(t.seq_tup_read) + sum(i.idx_tup_read))::bigint FROM pg_stat_user_tables t \
         JOIN pg_stat_user_indexes i USING (relid) \
         WHERE t.schemaname = $1 AND t.relname IN ('idempotency_keys', 'received')";
    sqlx::query_scalar(sql).bind(&place.schema).fetch_one(&mut place.connection().await).await.unwrap()
}

#[tokio::test]
async fn keys_and_message_ids_that_are_kept_longer_are_not_read() {
    let place = Place::new().await;
    let store = PostgresStore::connect_with(place.options().connections_max(1)).await.unwrap();
    let fill = format!(
        "INSERT INTO {0}.idempotency_keys (tenant, principal, key, fingerprint, epoch, response, expires_at) \
         SELECT '', 'ada', 'k-' || n, '', 1, '', now() + interval '1 day' FROM generate_series(1, {ROWS}) n; \
         INSERT INTO {0}.received (id, received_at, work) \
         SELECT gen_random_uuid(), now(), -n FROM generate_series(1, {ROWS}) n; \
         ANALYZE {0}.idempotency_keys, {0}.received",
        place.schema,
    );
    place.connection().await.execute(AssertSqlSafe(fill)).await.unwrap();
    let before = read(&place, &store).await;
    for _ in 0..8 {
        assert_eq!(store.delete_expired_keys(64).await.unwrap(), 0);
        assert_eq!(store.forget_received(Duration::from_hours(24), 64).await.unwrap(), 0);
    }
    let read = read(&place, &store).await - before;
    assert!(read < 100, "{read} of {} rows were read", 2 * ROWS);
    store.close().await;
    place.remove().await;
}
