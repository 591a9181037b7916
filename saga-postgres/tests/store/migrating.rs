//! Migrating a schema whose tables are large while other processes work on it.

use std::time::Duration;

use crate::support::{Place, begun, complete, completed, new_saga, status};
use saga_core::store::{Records as _, Sagas as _, Started, Status};
use saga_postgres::PostgresStore;
use sqlx::{AssertSqlSafe, Executor as _, PgConnection};

/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(10);

const BEFORE: [(i32, &str, &str); 8] = [
    (1, "tables", include_str!("../../migrations/0001_tables.sql")),
    (2, "steps", include_str!("../../migrations/0002_steps.sql")),
    (3, "shapes", include_str!("../../migrations/0003_shapes.sql")),
    (4, "reports", include_str!("../../migrations/0004_reports.sql")),
    (5, "begun", include_str!("../../migrations/0005_begun.sql")),
    (6, "shares", include_str!("../../migrations/0006_shares.sql")),
    (7, "tenants", include_str!("../../migrations/0007_tenants.sql")),
    (8, "idempotency_keys", include_str!("../../migrations/0008_idempotency_keys.sql")),
];

const RETENTION: &str = include_str!("../../migrations/0009_retention.sql");

async fn run(conn: &mut PgConnection, sql: &str, place: &Place) {
    let sql = sql.replace("{schema}", &place.schema);
    conn.execute(sqlx::raw_sql(AssertSqlSafe(sql))).await.unwrap();
}

/// The tables as the version before had them, with a saga.
async fn version_before(place: &Place) -> PgConnection {
    let mut conn = place.connection().await;
    let journal = "CREATE TABLE {schema}.migrations (number integer PRIMARY KEY, name text NOT NULL, \
         applied_at timestamptz NOT NULL DEFAULT clock_timestamp())";
    run(&mut conn, journal, place).await;
    for (number, name, sql) in BEFORE {
        run(&mut conn, sql, place).await;
        let note = format!("INSERT INTO {{schema}}.migrations (number, name) VALUES ({number}, '{name}')");
        run(&mut conn, &note, place).await;
    }
    let saga = "INSERT INTO {schema}.definitions (name, version) VALUES ('create-order', 1); \
         INSERT INTO {schema}.sagas (id, tenant, key, definition, digest, input, input_hash, started_at) \
         VALUES (-1, '', 'old', 1, decode(repeat('07', 32), 'hex'), '{}', '1', now()); \
         INSERT INTO {schema}.progress (id, status, version, state, advanced_at, ended_at) \
         VALUES (-1, 'completed', 2, '1', now(), now())";
    run(&mut conn, saga, place).await;
    conn
}

/// The indexes of the migration, each with whether it is valid.
async fn indexes(conn: &mut PgConnection, place: &Place) -> Vec<(String, bool)> {
    let sql = "SELECT c.relname::text, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid \
         JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname IN \
         ('progress_expiring', 'published_dated', 'dead_letters_saga', 'dead_letters_decided') ORDER BY 1";
    sqlx::query_as(sql).bind(&place.schema).fetch_all(conn).await.unwrap()
}

async fn is_noted(conn: &mut PgConnection, place: &Place) -> bool {
    let sql = format!("SELECT EXISTS (SELECT 1 FROM {}.migrations WHERE number = 9)", place.schema);
    sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(conn).await.unwrap()
}

/// The schema is whole, and has what it had before.
async fn check_whole(conn: &mut PgConnection, place: &Place) {
    let names = ["dead_letters_decided", "dead_letters_saga", "progress_expiring", "published_dated"];
    let expected: Vec<(String, bool)> = names.map(|name| (name.to_owned(), true)).into();
    assert_eq!(indexes(conn, place).await, expected);
    assert!(is_noted(conn, place).await);
    let store = place.open().await;
    assert_eq!(status(&store, "old").await, Some(Status::Completed));
    complete(&store, "k-1").await.unwrap();
    store.close().await;
}

#[tokio::test]
async fn a_process_that_ends_between_the_parts_leaves_what_the_next_one_goes_on_with() {
    let place = Place::new().await;
    let mut conn = version_before(&place).await;
    run(&mut conn, RETENTION, &place).await;
    run(&mut conn, "CREATE INDEX published_dated ON {schema}.published (published_at)", &place).await;
    place.open().await.close().await;
    check_whole(&mut conn, &place).await;
    place.remove().await;
}

#[tokio::test]
async fn an_index_that_was_left_half_built_is_built_again() {
    let place = Place::new().await;
    let mut conn = version_before(&place).await;
    run(&mut conn, RETENTION, &place).await;
    // It is over other columns, so that it is seen whether it was built again.
    run(&mut conn, "CREATE INDEX progress_expiring ON {schema}.progress (expires_at)", &place).await;
    let half = "UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{schema}.progress_expiring'::regclass";
    run(&mut conn, half, &place).await;
    place.open().await.close().await;
    check_whole(&mut conn, &place).await;
    let columns = format!(
        "SELECT indnatts::integer FROM pg_index WHERE indexrelid = '{}.progress_expiring'::regclass",
        place.schema
    );
    let columns: i32 = sqlx::query_scalar(AssertSqlSafe(columns)).fetch_one(&mut conn).await.unwrap();
    assert_eq!(columns, 2);
    place.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_of_the_new_version_that_start_at_once_take_turns() {
    let place = Place::new().await;
    let mut conn = version_before(&place).await;
    let starts: Vec<_> = (0..4).map(|_| tokio::spawn(PostgresStore::connect_with(place.options()))).collect();
    for start in starts {
        start.await.unwrap().unwrap().close().await;
    }
    check_whole(&mut conn, &place).await;
    place.remove().await;
}

/// Another process migrates, for longer than this one would wait for a table; it is not refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_waits_as_long_as_another_one_builds_an_index() {
    let place = Place::new().await;
    let mut conn = version_before(&place).await;
    conn.execute("BEGIN").await.unwrap();
    let turn = "SELECT pg_advisory_xact_lock(1935763297, hashtext($1))";
    sqlx::query(turn).bind(&place.schema).execute(&mut conn).await.unwrap();
    let options = place.options().migration_tries(1);
    let opening = tokio::spawn(async move { PostgresStore::connect_with(options).await });
    let mut watch = place.connection().await;
    let looks = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_try_advisory_xact_lock%' \
         OR (query = 'ROLLBACK' AND state = 'idle')";
    loop {
        let seen: i64 = sqlx::query_scalar(looks).fetch_one(&mut watch).await.unwrap();
        if seen > 1 {
            break;
        }
        tokio::time::sleep(PAUSE).await;
    }
    assert!(!opening.is_finished(), "it is not its turn");
    assert!(!is_noted(&mut watch, &place).await);
    conn.execute("COMMIT").await.unwrap();
    opening.await.unwrap().unwrap().close().await;
    check_whole(&mut conn, &place).await;
    place.remove().await;
}

/// A transaction with a snapshot is open meanwhile: it holds up the index, and no process that writes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn others_write_while_an_index_waits_for_a_dump() {
    let place = Place::new().await;
    let mut conn = version_before(&place).await;
    run(&mut conn, RETENTION, &place).await;
    let mut dump = place.connection().await;
    dump.execute("BEGIN ISOLATION LEVEL REPEATABLE READ").await.unwrap();
    // A table that no migration locks: its snapshot is what the index waits for.
    run(&mut dump, "SELECT count(*) FROM {schema}.definitions", &place).await;
    let options = place.options();
    let opening = tokio::spawn(async move { PostgresStore::connect_with(options).await });
    let waits = "SELECT EXISTS (SELECT 1 FROM pg_stat_activity \
         WHERE query LIKE '%CREATE INDEX CONCURRENTLY%' || $1 || '%' AND wait_event_type = 'Lock')";
    while !sqlx::query_scalar::<_, bool>(waits).bind(&place.schema).fetch_one(&mut conn).await.unwrap() {
        tokio::time::sleep(PAUSE).await;
    }
    conn.execute("SET lock_timeout = '2s'").await.unwrap();
    run(&mut conn, "UPDATE {schema}.progress SET version = version + 1 WHERE id = -1", &place).await;
    assert!(!is_noted(&mut conn, &place).await);
    dump.execute("COMMIT").await.unwrap();
    opening.await.unwrap().unwrap().close().await;
    check_whole(&mut conn, &place).await;
    place.remove().await;
}

/// What the version before calls is still there. A saga that it reopens loses its date.
#[tokio::test]
async fn a_process_of_the_version_before_goes_on_working() {
    let place = Place::new().await;
    let store = place.open().await;
    let claim = begun(&store, "k-1").await;
    store.record(vec![completed(&claim)]).await.unwrap();
    let mut conn = place.connection().await;
    let dated =
        format!("UPDATE {{schema}}.progress SET expires_at = now(), hosts = 'payments' WHERE id = {}", claim.saga.0);
    run(&mut conn, &dated, &place).await;
    let nulls = |count: usize| vec!["NULL"; count].join(", ");
    let record = format!(
        "SELECT * FROM {}.record_changes(NULL, false, {}, ARRAY[0], ARRAY[{}]::bigint[], ARRAY[2]::bigint[], ARRAY[false], \
         ARRAY['running'], ARRAY[false], ARRAY['1'::bytea], {})",
        place.schema,
        nulls(4 + 2 + 6 + 12 + 7),
        claim.saga.0,
        nulls(11 + 12 + 12 + 11 + 6),
    );
    let misses = conn.fetch_all(AssertSqlSafe(record)).await.unwrap();
    assert_eq!(misses.len(), 0);
    let left = format!(
        "SELECT status, expires_at IS NULL AND hosts IS NULL FROM {}.progress WHERE id = {}",
        place.schema, claim.saga.0
    );
    let left: (String, bool) = sqlx::query_as(AssertSqlSafe(left)).fetch_one(&mut conn).await.unwrap();
    assert_eq!(left, ("running".to_owned(), true));
    let started = store.start(vec![new_saga(&store, "k-1").await]).await.unwrap();
    assert!(matches!(started[..], [Started::AlreadyExists(_)]), "{started:?}");
    store.close().await;
    place.remove().await;
}
