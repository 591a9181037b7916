//! Keys and rows that somebody holds in an open transaction: who wants them waits, and nobody else does (G8).

use std::time::Duration;

use saga_core::key::{Key, Tenant};
use saga_core::store::{Records as _, Sagas as _, StartIn as _, Started, Status, StoreErrorKind};
use saga_core::{Outcome, Runtime, Saga, StepError, saga_step};
use saga_postgres::fault_injection::Mutant;
use saga_postgres::{PostgresOptions, PostgresStore};
use sqlx::{Executor as _, PgConnection};

use crate::support::{Place, begun, completed, new_saga, status};

/// What is not held up ends long before.
const SOON: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(5);

#[saga_step(no_compensation)]
async fn wave(_: String) -> Result<(), StepError> {
    Ok(())
}

/// Takes a lock that the test holds, if its input names one.
#[saga_step(no_compensation, timeout = "10m")]
async fn lock(tx: &mut PgConnection, number: i64) -> Result<(), StepError> {
    if number > 0 {
        sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(number).execute(tx).await?;
    }
    Ok(())
}

/// Waits until a session waits for what this one holds.
async fn until_waited_for(place: &Place, holder: &mut PgConnection) {
    let pid: i32 = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&mut *holder).await.unwrap();
    let mut watch = place.connection().await;
    let waits = "SELECT EXISTS (SELECT 1 FROM pg_stat_activity \
         WHERE wait_event_type = 'Lock' AND $1 = ANY (pg_blocking_pids(pid)))";
    while !sqlx::query_scalar::<_, bool>(waits).bind(pid).fetch_one(&mut watch).await.unwrap() {
        tokio::time::sleep(PAUSE).await;
    }
}

/// An application holds a key in a transaction that it does not end; others are started and recorded meanwhile. Answers
/// whether they ended within this time.
async fn beside_a_held_key(place: &Place, options: PostgresOptions, time: Duration) -> (bool, Started) {
    let store = PostgresStore::connect_with(options).await.unwrap();
    let saga = Saga::named("waving").input::<String>().step::<wave>().build().unwrap();
    let runtime = Runtime::builder(store.clone()).saga(&saga).start().await.unwrap();
    let mut holder = place.connection().await;
    holder.execute("BEGIN").await.unwrap();
    store.start_in(&mut holder, new_saga(&store, "held").await).await.unwrap();
    let first = {
        let (runtime, saga) = (runtime.clone(), saga.clone());
        tokio::spawn(async move {
            loop {
                drop(runtime.start(&saga, "held", String::new()).await);
            }
        })
    };
    // It stands in the lane before the others.
    until_waited_for(place, &mut holder).await;
    let waits = {
        let (store, held) = (store.clone(), new_saga(&store, "held").await);
        tokio::spawn(async move {
            loop {
                match store.start(vec![held.clone()]).await {
                    Ok(mut started) => return started.remove(0),
                    Err(error) => assert_eq!(error.kind(), StoreErrorKind::Conflict, "{error}"),
                }
            }
        })
    };
    let others = async {
        let running = runtime.start(&saga, "other", String::new()).await.unwrap();
        assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    };
    let is_soon = tokio::time::timeout(time, others).await.is_ok();
    first.abort();
    holder.execute("COMMIT").await.unwrap();
    let started = waits.await.unwrap();
    runtime.shutdown().await;
    store.close().await;
    (is_soon, started)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g8_a_key_that_somebody_holds_stops_no_other_start() {
    let place = Place::new().await;
    let (is_soon, started) = beside_a_held_key(&place, place.options(), SOON).await;
    assert!(is_soon, "a start of another key waits with it");
    assert!(matches!(started, Started::AlreadyExists(_)), "{started:?}");
    place.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_limit_one_held_key_stops_every_start() {
    let place = Place::new().await;
    let options = place.options().mutant(Mutant::WaitsForLocksWithoutLimit);
    let (is_soon, _) = beside_a_held_key(&place, options, SOON / 4).await;
    assert!(!is_soon);
    place.remove().await;
}

#[tokio::test]
async fn g8_a_row_that_somebody_holds_is_waited_for_shortly_and_nothing_is_recorded() {
    let place = Place::new().await;
    let store = place.open().await;
    let (held, free) = (begun(&store, "held").await, begun(&store, "free").await);
    let mut holder = place.connection().await;
    holder.execute("BEGIN").await.unwrap();
    let lock = format!("SELECT 1 FROM {}.work WHERE id = {} FOR UPDATE", place.schema, held.work.id.0);
    holder.execute(sqlx::AssertSqlSafe(lock)).await.unwrap();
    let error = store.record(vec![completed(&free), completed(&held)]).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Conflict, "{error}");
    assert_eq!(status(&store, "free").await, Some(Status::Running));
    // The next one on the same connection waits as ever.
    store.record(vec![completed(&free)]).await.unwrap()[0].as_ref().unwrap();
    holder.execute("ROLLBACK").await.unwrap();
    store.record(vec![completed(&held)]).await.unwrap()[0].as_ref().unwrap();
    let limits: String = store
        .on_next_connection(async |conn| sqlx::query_scalar("SHOW lock_timeout").fetch_one(conn).await.unwrap())
        .await
        .unwrap();
    assert_eq!(limits, "0", "the limit ends with the statement");
    store.close().await;
    place.remove().await;
}

/// A client that starts one key many times, whose first step takes long.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g8_many_starts_of_one_slow_key_leave_the_workers_to_others() {
    let place = Place::new().await;
    let saga = Saga::named("locking").input::<i64>().step::<lock>().build().unwrap();
    let store = place.open().await;
    // Two processes: what one knows by itself, the other finds out.
    let here = Runtime::builder(store.clone()).saga(&saga).start().await.unwrap();
    let there = Runtime::builder(place.open().await).saga(&saga).start().await.unwrap();
    for runtime in [&here, &there] {
        let key = format!("warm-{}", std::ptr::from_ref(runtime).addr());
        runtime.start(&saga, key, 0).await.unwrap().outcome().await.unwrap();
    }
    let mut holder = place.connection().await;
    let number: i64 = sqlx::query_scalar("SELECT hashtextextended($1, 0) | 1")
        .bind(&place.schema)
        .fetch_one(&mut holder)
        .await
        .unwrap();
    let number = number.checked_abs().unwrap_or(1);
    sqlx::query("SELECT pg_advisory_lock($1)").bind(number).execute(&mut holder).await.unwrap();
    let mut starts = Vec::new();
    for turn in 0..24 {
        let (runtime, saga) = (if turn % 2 == 0 { here.clone() } else { there.clone() }, saga.clone());
        starts.push(tokio::spawn(async move { runtime.start(&saga, "slow", number).await }));
        // Each finds a worker that is idle.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for (key, runtime) in [("other-1", &here), ("other-2", &there)] {
        let other = async { runtime.start(&saga, key, 0).await.unwrap().outcome().await.unwrap() };
        let outcome = tokio::time::timeout(SOON, other).await.expect("the workers wait for a key");
        assert!(matches!(outcome, Outcome::Completed { .. }));
    }
    sqlx::query("SELECT pg_advisory_unlock($1)").bind(number).execute(&mut holder).await.unwrap();
    for start in starts {
        let running = tokio::time::timeout(SOON, start).await.unwrap().unwrap().unwrap();
        assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    }
    let row = store.saga(&Tenant::default(), &Key::new("slow").unwrap()).await.unwrap();
    assert_eq!(row.map(|row| row.status), Some(Status::Completed));
    here.shutdown().await;
    there.shutdown().await;
    place.remove().await;
}
