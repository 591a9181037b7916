//! Connections that are dropped in the middle of something, and the plans that a connection keeps.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::support::{Body, Notes as _, Place, begun, completed, definition, member, new_saga};
use saga_core::store::{ClaimRequest, Lease, Members as _, Outbox as _, Records as _, Sagas as _, Work as _};
use saga_postgres::PostgresStore;
use saga_servers::PostgresServer;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Executor as _, PgConnection};

/// How often a future is polled at most before it is dropped.
const POLLS_MAX: usize = 12;

/// Polls a future so many times, lets the runtime work in between, and drops it. Answers whether it came to its end.
async fn dropped_after<F: Future>(polls: usize, future: F) -> bool {
    let mut future = pin!(future);
    for _ in 0..polls {
        let polled = std::future::poll_fn(|context: &mut Context<'_>| Poll::Ready(future.as_mut().poll(context))).await;
        if polled.is_ready() {
            return true;
        }
        // What the poll asked of the server may be answered meanwhile.
        tokio::time::timeout(Duration::from_micros(300), std::future::pending::<()>()).await.unwrap_err();
    }
    false
}

/// Whether the next borrower of a connection finds itself in a transaction that it did not open.
async fn is_stale(store: &PostgresStore) -> bool {
    store.on_next_connection(async |conn| is_in_transaction(conn).await).await.unwrap()
}

/// Two statements outside any transaction have one each.
async fn is_in_transaction(conn: &mut PgConnection) -> bool {
    let mut xact = async || -> String {
        sqlx::query_scalar("SELECT pg_current_xact_id()::text").fetch_one(&mut *conn).await.unwrap()
    };
    xact().await == xact().await
}

#[tokio::test]
async fn g10_a_dropped_call_leaves_no_transaction_behind() {
    let place = Place::new().await;
    let store = PostgresStore::connect_with(place.options().connections_max(1)).await.unwrap();
    let lease = member(&store, Duration::from_mins(1)).await;
    let tenant = saga_core::key::Tenant::default();
    let mut ended = 0;
    for polls in 1..=POLLS_MAX {
        let key = format!("k-{polls}");
        let saga = new_saga(&store, &key).await;
        ended += usize::from(dropped_after(polls, store.start(vec![saga.clone()])).await);
        assert!(!is_stale(&store).await, "start, dropped after {polls} polls");
        store.start(vec![saga.clone()]).await.unwrap();
        ended += usize::from(dropped_after(polls, store.saga_with_steps(&tenant, &saga.key)).await);
        assert!(!is_stale(&store).await, "saga_with_steps, dropped after {polls} polls");
        let request = ClaimRequest { lease, limit: 10, definitions: [definition()].into(), takes_over: true };
        ended += usize::from(dropped_after(polls, store.claim(request)).await);
        assert!(!is_stale(&store).await, "claim, dropped after {polls} polls");
        let claim = begun(&store, &format!("t-{polls}")).await;
        let body = Body::new(std::slice::from_ref(&claim)).note("once");
        ended += usize::from(dropped_after(polls, body.transact(&store)).await);
        assert!(!is_stale(&store).await, "transact, dropped after {polls} polls");
        let claim = begun(&store, &format!("r-{polls}")).await;
        ended += usize::from(dropped_after(polls, store.record(vec![completed(&claim)])).await);
        assert!(!is_stale(&store).await, "record, dropped after {polls} polls");
        ended += usize::from(dropped_after(polls, store.join(Duration::from_secs(9))).await);
        assert!(!is_stale(&store).await, "join, dropped after {polls} polls");
    }
    assert!(ended > 0 && ended < 6 * POLLS_MAX, "some of them ended, and some were dropped: {ended}");
    // Whatever was dropped happened whole or not at all, and a step happened once.
    assert_eq!(place.notes().await.len(), POLLS_MAX);
    assert_eq!(store.orphaned(100).await.unwrap(), []);
    store.close().await;
    place.remove().await;
}

#[tokio::test]
async fn a_begin_that_the_application_dropped_is_rolled_back_before_anybody_else_gets_the_connection() {
    let place = Place::new().await;
    let pool = PostgresStore::pool_options().max_connections(1).connect_with(place.connect.clone()).await.unwrap();
    let mut dropped = 0;
    for round in 0..10 * POLLS_MAX {
        dropped += usize::from(!dropped_after(1 + round % POLLS_MAX, pool.begin()).await);
        assert!(!is_in_transaction(&mut pool.acquire().await.unwrap()).await, "round {round}");
    }
    assert!(dropped > 0, "nothing was dropped half way");
    pool.close().await;
    place.remove().await;
}

/// Its connections have no runtime any more in which they could go back to the pool.
#[test]
fn a_store_may_be_dropped_behind_its_runtime() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (place, store) = runtime.block_on(async {
        let place = Place::new().await;
        let store = PostgresStore::connect_with(place.options()).await.unwrap();
        member(&store, Duration::from_mins(1)).await;
        (place, store)
    });
    assert!(store.statistics().idle > 0, "no connection is kept");
    drop(runtime);
    drop(store);
    tokio::runtime::Runtime::new().unwrap().block_on(place.remove());
}

/// What makes the statistics say that a table is empty, or leaves it at that there are none.
const SAY_EMPTY: &str = "ANALYZE";
const SAY_NOTHING: &str = "TABLE";
/// How often a spoilt function is tried at most.
const TRIES_MAX: usize = 12;
/// How many rows each table is filled with.
const ROWS: i32 = 20_000;

#[tokio::test]
async fn statements_keep_their_index_plans_on_wrong_statistics() {
    for statistics in [SAY_EMPTY, SAY_NOTHING] {
        let place = Place::new().await;
        let read = read_from_end_to_end(&place, statistics).await;
        assert!(read.is_empty(), "tables that were read from end to end: {read:?}");
        place.remove().await;
    }
}

#[tokio::test]
async fn without_settings_of_their_own_the_functions_read_whole_tables() {
    let (_alone, server) = alone().await;
    let spoilt = async || {
        let mut read = Vec::new();
        for function in ["grant_claims_of_tenants", "claim_reported_work", "record_dated_changes"] {
            let place = Place::on(&server).await;
            place.open().await.close().await;
            place.spoil(function, "SET enable_seqscan TO 'off'", "").await;
            place.spoil(function, "SET enable_hashjoin TO 'off'", "").await;
            read.extend(read_from_end_to_end(&place, SAY_EMPTY).await);
            place.remove().await;
        }
        read
    };
    assert!(!on_some_try(spoilt).await.is_empty(), "the functions have no need of their settings");
}

/// A server that nobody else uses. A session that falls behind with the changes of definitions anywhere on its server
/// forgets all its plans, and makes them anew on the full tables: then there is nothing to see.
async fn alone() -> (PostgresServer, PgConnectOptions) {
    let server = PostgresServer::start().await.unwrap();
    let connect = server.url().parse().unwrap();
    (server, connect)
}

/// What a spoilt function reads from end to end, on the first try on which it does.
async fn on_some_try(spoilt: impl AsyncFn() -> Vec<(String, i64)>) -> Vec<(String, i64)> {
    for _ in 0..TRIES_MAX {
        let read = spoilt().await;
        if !read.is_empty() {
            return read;
        }
    }
    Vec::new()
}

/// Fills tables that the statistics hold for empty, and answers which of them were then read as a whole, and how often.
async fn read_from_end_to_end(place: &Place, statistics: &str) -> Vec<(String, i64)> {
    let store = PostgresStore::connect_with(place.options().connections_max(1)).await.unwrap();
    let mut conn = place.connection().await;
    // Nobody corrects the statistics.
    for table in ["work", "records", "progress", "sagas", "outbox"] {
        let wrong =
            format!("ALTER TABLE {0}.{table} SET (autovacuum_enabled = false); {statistics} {0}.{table}", place.schema);
        conn.execute(AssertSqlSafe(wrong)).await.unwrap();
    }
    // The plans are made while the tables are empty.
    let lease = member(&store, Duration::from_hours(1)).await;
    run_everything(&store, lease, "warm", 8).await;
    let empty = format!("TRUNCATE {0}.work, {0}.records, {0}.progress, {0}.sagas", place.schema);
    conn.execute(AssertSqlSafe(empty)).await.unwrap();
    run_everything(&store, lease, "first", 1).await;
    let fill = format!(
        "INSERT INTO {0}.work (id, saga, tenant, key, kind, step, definition, epoch, due_at) \
         SELECT -n, -n, '', 'f-' || n, 'do', 'reserve-stock', 4711, 1, now() FROM generate_series(1, {ROWS}) n; \
         INSERT INTO {0}.progress (id, status, version, state, advanced_at) \
         SELECT -n, 'running', 1, '', now() FROM generate_series(1, {ROWS}) n; \
         INSERT INTO {0}.sagas (id, tenant, key, definition, digest, input, input_hash, started_at) \
         SELECT -n, '', 'f-' || n, 4711, '', '', '', now() FROM generate_series(1, {ROWS}) n; \
         INSERT INTO {0}.records (tenant, key, step, saga, outcome, position, attempts, recorded_at, took_micros) \
         SELECT '', 'f-' || n, 'other', -n, 'done', 1, 1, now(), 1 FROM generate_series(1, {ROWS}) n",
        place.schema,
    );
    conn.execute(AssertSqlSafe(fill)).await.unwrap();
    let before = scans(place, &store).await;
    run_everything(&store, lease, "full", 8).await;
    let after = scans(place, &store).await;
    store.close().await;
    assert!(after.iter().zip(&before).any(|(after, before)| after.2 > before.2), "an index was read");
    // What was read by an index is counted as whole tables, so that a few rows too many are none.
    let more = after
        .into_iter()
        .zip(before)
        .map(|(after, before)| (after.0, after.1 - before.1 + (after.2 - before.2) / i64::from(ROWS)));
    more.filter(|(_, more)| *more > 0).collect()
}

/// Every statement of the hot path, some times over.
async fn run_everything(store: &PostgresStore, lease: Lease, prefix: &str, times: usize) {
    for number in 0..times {
        let one = begun(store, &format!("{prefix}-a-{number}")).await;
        let two = begun(store, &format!("{prefix}-b-{number}")).await;
        Body::new(&[one, two]).note("one").note("two").transact(store).await.unwrap();
        let claim = begun(store, &format!("{prefix}-c-{number}")).await;
        store.renew(&[claim.work], lease).await.unwrap();
        store.begin_attempt(claim.work, 1).await.unwrap();
        store.record(vec![completed(&claim)]).await.unwrap();
        begun(store, &format!("{prefix}-d-{number}")).await;
        let request = ClaimRequest { lease, limit: 10, definitions: [definition()].into(), takes_over: true };
        let work = store.claim(request).await.unwrap().work;
        store.release_work(&work.iter().map(|work| work.work).collect::<Vec<_>>()).await.unwrap();
        store.lease_lanes(lease, 64).await.unwrap();
    }
}

/// How often each table was read from end to end, and how many entries of its indexes were read, until now.
async fn scans(place: &Place, store: &PostgresStore) -> Vec<(String, i64, i64)> {
    // A session tells what it counted when it feels like it, or when it is told to.
    store.pool().execute("SELECT pg_stat_force_next_flush()").await.unwrap();
    store.pool().execute("SELECT 1").await.unwrap();
    let mut conn = place.connection().await;
    let sql = "SELECT t.relname::text, t.seq_scan, sum(i.idx_tup_read)::bigint FROM pg_stat_user_tables t \
         JOIN pg_stat_user_indexes i USING (relid) \
         WHERE t.schemaname = $1 AND t.relname IN ('work', 'records', 'progress', 'sagas') GROUP BY 1, 2 ORDER BY 1";
    sqlx::query_as(sql).bind(&place.schema).fetch_all(&mut conn).await.unwrap()
}
