//! A database of the version before, with a million finished sagas in it, gets the tables of this version, while a process
//! of the version before goes on working.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use saga_core::engine::SagaAdmin;
use saga_core::store::Purge as _;
use saga_core::{Retention, Saga, StepError, saga_step};
use saga_postgres::{PostgresStore, sqlx};
use saga_servers::PostgresServer;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(10);

/// The migrations of the version before, which never change.
const BEFORE: [(&str, &str); 6] = [
    ("tables", include_str!("../../migrations/0001_tables.sql")),
    ("steps", include_str!("../../migrations/0002_steps.sql")),
    ("shapes", include_str!("../../migrations/0003_shapes.sql")),
    ("reports", include_str!("../../migrations/0004_reports.sql")),
    ("begun", include_str!("../../migrations/0005_begun.sql")),
    ("shares", include_str!("../../migrations/0006_shares.sql")),
];

const FINISHED: i64 = 1_000_000;
/// Above the ids of the finished sagas.
const FIRST_OF_OLD_PROCESS: i64 = 10_000_000;

#[saga_step(no_compensation)]
async fn ship(_order: u32) -> Result<(), StepError> {
    Ok(())
}

async fn run(conn: &mut PgConnection, sql: &str) {
    conn.execute(sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))).await.unwrap();
}

/// The schema as the version before made it, with finished sagas.
async fn database_of_before(url: &str) {
    let mut conn = PgConnection::connect(url).await.unwrap();
    let journal = "CREATE SCHEMA saga; CREATE TABLE saga.migrations (number integer PRIMARY KEY, name text NOT NULL, \
                   applied_at timestamptz NOT NULL DEFAULT clock_timestamp())";
    run(&mut conn, journal).await;
    for (number, (name, sql)) in (1..).zip(BEFORE) {
        run(&mut conn, &sql.replace("{schema}", "saga")).await;
        run(&mut conn, &format!("INSERT INTO saga.migrations (number, name) VALUES ({number}, '{name}')")).await;
    }
    let fill = format!(
        "SET synchronous_commit = off;
         INSERT INTO saga.definitions (name, version) VALUES ('order', 1);
         INSERT INTO saga.sagas SELECT n, '', 'o-' || n, 1, '\\x00', '17', '\\x01', now() - interval '90 days'
             FROM generate_series(1, {FINISHED}) n;
         INSERT INTO saga.progress SELECT n, 'completed', 3, '{{}}', now() - interval '90 days', now() - interval '90 days'
             FROM generate_series(1, {FINISHED}) n;
         INSERT INTO saga.records SELECT '', 'o-' || n, 'ship', n, 'done', 1, 1, now() - interval '90 days', 5, 'null'
             FROM generate_series(1, {FINISHED}) n;
         ANALYZE"
    );
    run(&mut conn, &fill).await;
}

/// The names of the parameters of a function of a migration.
fn parameters(sql: &str, function: &str) -> Vec<String> {
    let head = format!("CREATE FUNCTION {{schema}}.{function}(");
    let list = sql.split_once(&head).unwrap().1.split_once(") RETURNS").unwrap().0;
    list.split(',').map(|parameter| parameter.split_whitespace().next().unwrap().to_owned()).collect()
}

/// A call of a function with these arguments; all others are NULL, as the store passes columns without rows.
fn call(sql: &str, function: &str, arguments: &[(&str, String)]) -> String {
    let value = |name: &String| {
        let given = arguments.iter().find(|(known, _)| known == name);
        format!("{name} => {}", given.map_or("NULL", |(_, value)| value))
    };
    let all: Vec<String> = parameters(sql, function).iter().map(value).collect();
    format!("SELECT * FROM saga.{function}({})", all.join(", "))
}

/// What a process of the version before sends for one saga: its start, and the commit of its only step.
async fn one_saga_of_before(conn: &mut PgConnection, id: i64) {
    let array = |value: &str| format!("ARRAY[{value}]");
    let (saga, work, key) =
        (array(&format!("{id}::bigint")), array(&format!("{}::bigint", id + 1)), format!("'old-{id}'"));
    let start = call(
        BEFORE[1].1,
        "start_sagas",
        &[
            ("s_id", saga.clone()),
            ("s_tenant", array("''")),
            ("s_key", array(&key)),
            ("s_definition", array("1")),
            ("s_digest", array("'\\x00'::bytea")),
            ("s_input", array("'17'::bytea")),
            ("s_input_hash", array("'\\x01'::bytea")),
            ("s_state", array("'{}'::bytea")),
            ("s_status", array("'running'")),
            ("s_ends", array("false")),
            ("c_id", work.clone()),
            ("c_saga", saga.clone()),
            ("c_tenant", array("''")),
            ("c_key", array(&key)),
            ("c_kind", array("'do'")),
            ("c_step", array("'ship'")),
            ("c_definition", array("1")),
            ("c_payload", array("NULL::bytea")),
            ("c_due", array("0::bigint")),
            ("c_owner", array("NULL::bigint")),
            ("c_ttl", array("NULL::bigint")),
        ],
    );
    run(conn, &start).await;
    let commit = call(
        BEFORE[1].1,
        "record_changes",
        &[
            ("p_cdc", "false".to_owned()),
            ("h_change", array("0")),
            ("h_id", work.clone()),
            ("h_epoch", array("1::bigint")),
            ("h_not_late", array("false")),
            ("f_change", array("0")),
            ("f_id", work),
            ("r_change", array("0")),
            ("r_tenant", array("''")),
            ("r_key", array(&key)),
            ("r_step", array("'ship'")),
            ("r_saga", saga.clone()),
            ("r_outcome", array("'done'")),
            ("r_position", array("1::bigint")),
            ("r_attempts", array("1::bigint")),
            ("r_took", array("5::bigint")),
            ("r_output", array("'null'::bytea")),
            ("r_error", array("NULL::bytea")),
            ("r_input", array("NULL::bytea")),
            ("s_change", array("0")),
            ("s_id", saga),
            ("s_expected", array("1::bigint")),
            ("s_new", array("false")),
            ("s_status", array("'completed'")),
            ("s_ends", array("true")),
            ("s_state", array("'{}'::bytea")),
        ],
    );
    run(conn, &commit).await;
}

/// Works until it is told to stop; answers how many sagas it completed. No statement may wait for long.
async fn process_of_before(url: String, stops: Arc<AtomicBool>, completed: Arc<AtomicU64>) {
    let mut conn = PgConnection::connect(&url).await.unwrap();
    run(&mut conn, "SET lock_timeout = '5s'").await;
    for number in 0.. {
        one_saga_of_before(&mut conn, FIRST_OF_OLD_PROCESS + 2 * number).await;
        completed.fetch_add(1, Ordering::SeqCst);
        if stops.load(Ordering::SeqCst) {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_million_sagas_are_migrated_while_a_process_of_the_version_before_works() {
    let server = PostgresServer::start().await.unwrap();
    let url = server.create_database("before").await.unwrap();
    database_of_before(&url).await;
    let (stops, completed) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let old = tokio::spawn(process_of_before(url.clone(), Arc::clone(&stops), Arc::clone(&completed)));
    while completed.load(Ordering::SeqCst) < 10 {
        tokio::time::sleep(PAUSE).await;
    }

    let before = completed.load(Ordering::SeqCst);
    let store = PostgresStore::connect(&url).await.unwrap();
    let meanwhile = completed.load(Ordering::SeqCst) - before;
    println!("the process of the version before completed {meanwhile} sagas during the migration");
    assert!(meanwhile > 0, "it stood still during the migration");
    // And it goes on after it.
    let after = completed.load(Ordering::SeqCst);
    while completed.load(Ordering::SeqCst) < after + 10 {
        assert!(!old.is_finished(), "it failed");
        tokio::time::sleep(PAUSE).await;
    }
    stops.store(true, Ordering::SeqCst);
    old.await.unwrap();

    // What ended before has no date, until the retention is applied.
    assert!(store.expired(10).await.unwrap().is_empty());
    let saga: Saga<PostgresStore, u32> =
        Saga::named("order").input().retention(Retention::days(30)).step::<ship>().build().unwrap();
    let admin = SagaAdmin::new(store.clone()).saga(&saga).retention();
    let all = FINISHED.unsigned_abs() + completed.load(Ordering::SeqCst);
    assert_eq!(admin.apply("order").await.unwrap(), all);
    assert_eq!(admin.due().await.unwrap()[0].sagas, 50_000, "they are counted up to a limit");
    assert_eq!(store.expired(2_000).await.unwrap().len(), 2_000);
    store.close().await;
}
