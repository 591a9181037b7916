//! Each test runs on both databases, and expects the same of them.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::error::Error as _;
use std::time::{Duration, SystemTime};

use saga_core::{Outcome, Runtime, Saga, StepError, saga_compensation, saga_step};
use saga_postgres::sqlx::postgres::PgConnectOptions;
use saga_postgres::sqlx::{Connection as _, PgConnection};
use saga_postgres::{PostgresOptions, PostgresStore};
use saga_sql::{Dialect, Json, SqlConn, SqlErrorKind, SqlStore};
use saga_sqlite::SqliteStore;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

#[derive(Debug, PartialEq, Deserialize)]
struct Everything {
    id: i64,
    small: u16,
    price: f64,
    name: String,
    paid: bool,
    photo: Vec<u8>,
    #[serde(with = "time::serde::rfc3339")]
    placed_at: OffsetDateTime,
    items: Json<Vec<Item>>,
    status: Status,
    note: Option<String>,
    rank: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Item {
    sku: String,
    pieces: u32,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Placed,
    Confirmed,
}

async fn create_everything(conn: &mut impl SqlConn) {
    conn.execute_batch(match dialect_of(conn) {
        Dialect::Sqlite => {
            "CREATE TABLE everything (id INTEGER PRIMARY KEY, small INTEGER NOT NULL, price REAL, name TEXT UNIQUE,
             paid BOOLEAN, photo BLOB, placed_at TEXT, items TEXT, status TEXT, note TEXT, rank BIGINT)"
        }
        _ => {
            "CREATE TABLE everything (id BIGINT PRIMARY KEY, small SMALLINT NOT NULL, price DOUBLE PRECISION,
             name TEXT UNIQUE, paid BOOLEAN, photo BYTEA, placed_at TIMESTAMPTZ, items JSONB, status TEXT, note TEXT,
             rank BIGINT)"
        }
    })
    .await
    .unwrap();
}

fn dialect_of<C: SqlConn>(_: &C) -> Dialect {
    C::DIALECT
}

const INSERT: &str =
    "INSERT INTO everything (id, small, price, name, paid, photo, placed_at, items, status, note, rank)
                      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'placed', $9, $10)";

fn placed_at() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_micros(1_709_208_000_250_001)
}

async fn insert(conn: &mut impl SqlConn, id: i64, note: Option<&str>, rank: Option<i64>) -> u64 {
    let (photo, items) = (vec![0_u8, 255], Json(vec![Item { sku: "TEA".to_owned(), pieces: 2 }]));
    let name = format!("order {id}");
    conn.execute(INSERT, &[&id, &7_u16, &3.5, &name, &true, &photo, &placed_at(), &items, &note, &rank]).await.unwrap()
}

async fn values_come_back_as_they_went_in(conn: &mut impl SqlConn) {
    create_everything(conn).await;
    // The statement is prepared once, so `NULL` and a value have to be of one type, in either order.
    assert_eq!(insert(conn, 1, None, None).await, 1);
    assert_eq!(insert(conn, 2, Some("by hand"), Some(-1)).await, 1);
    assert_eq!(insert(conn, 3, None, Some(i64::MAX)).await, 1);

    let read: Vec<Everything> = conn.query("SELECT * FROM everything ORDER BY id", &[]).await.unwrap();
    let placed_at = OffsetDateTime::from(placed_at());
    let expected = |id, note: Option<&str>, rank| Everything {
        id,
        small: 7,
        price: 3.5,
        name: format!("order {id}"),
        paid: true,
        photo: vec![0, 255],
        placed_at,
        items: Json(vec![Item { sku: "TEA".to_owned(), pieces: 2 }]),
        status: Status::Placed,
        note: note.map(str::to_owned),
        rank,
    };
    assert_eq!(
        read,
        [expected(1, None, None), expected(2, Some("by hand"), Some(-1)), expected(3, None, Some(i64::MAX))]
    );
}

async fn a_row_is_a_tuple_or_a_single_value_too(conn: &mut impl SqlConn) {
    create_everything(conn).await;
    insert(conn, 1, Some("by hand"), None).await;
    let sql = "SELECT name, note, paid FROM everything WHERE id = $1";
    let found: Option<(String, Option<String>, bool)> = conn.query_opt(sql, &[&1]).await.unwrap();
    assert_eq!(found, Some(("order 1".to_owned(), Some("by hand".to_owned()), true)));
    let missing: Option<(String, Option<String>, bool)> = conn.query_opt(sql, &[&2]).await.unwrap();
    assert_eq!(missing, None);

    assert_eq!(conn.query_one::<i64>("SELECT count(*) FROM everything", &[]).await.unwrap(), 1);
    assert_eq!(conn.query_one::<Option<i64>>("SELECT max(rank) FROM everything", &[]).await.unwrap(), None);
    assert_eq!(conn.query_one::<Vec<u8>>("SELECT photo FROM everything", &[]).await.unwrap(), [0, 255]);
    let shown: String = conn.query_one("SELECT placed_at FROM everything", &[]).await.unwrap();
    assert_eq!(shown, "2024-02-29T12:00:00.250001Z");
    // A parameter may stand twice, and in any order.
    let sql = "SELECT id FROM everything WHERE name = $2 AND id = $1 OR id = $1";
    assert_eq!(conn.query_one::<u8>(sql, &[&1, &"order 1"]).await.unwrap(), 1);
    let map: BTreeMap<String, i64> = conn.query_one("SELECT id, small FROM everything", &[]).await.unwrap();
    assert_eq!(map, BTreeMap::from([("id".to_owned(), 1), ("small".to_owned(), 7)]));
    let times = "SELECT count(*) FROM everything WHERE placed_at <= $1 AND placed_at > $2";
    let before = placed_at() - Duration::from_hours(24 * 365 * 60);
    assert_eq!(conn.query_one::<i64>(times, &[&placed_at(), &before]).await.unwrap(), 1);
}

async fn what_is_wrong_is_said_with_the_statement(conn: &mut impl SqlConn) {
    create_everything(conn).await;
    insert(conn, 1, None, None).await;
    insert(conn, 2, None, None).await;

    let error = conn.query_one::<i64>("SELECT id FROM everything", &[]).await.unwrap_err();
    assert_eq!(said(&error), (SqlErrorKind::Row, "the query gave 2 rows instead of one".to_owned()));
    assert_eq!(error.to_string(), "cannot run `SELECT id FROM everything`");
    let error = conn.query_one::<i64>("SELECT id FROM everything WHERE id = $1", &[&9]).await.unwrap_err();
    assert_eq!(said(&error).1, "the query gave 0 rows instead of one");

    let sql = "SELECT id, note FROM everything WHERE id = 1";
    let error = conn.query_one::<(i64, String)>(sql, &[]).await.unwrap_err();
    assert_eq!(said(&error).1, "column `note`: invalid type: unit value, expected a string");
    let error = conn.query_one::<(i64,)>(sql, &[]).await.unwrap_err();
    assert_eq!(said(&error).1, "the query gives 2 columns for a tuple of 1");
    let error = conn.query_one::<i64>(sql, &[]).await.unwrap_err();
    assert!(said(&error).1.contains("read them into a struct or a tuple"), "{error:?}");
    let error = conn.query_one::<Item>(sql, &[]).await.unwrap_err();
    assert_eq!(said(&error).1, "missing field `sku`");
    let error = conn.query_one::<u8>("SELECT id + 255 FROM everything WHERE id = 1", &[]).await.unwrap_err();
    assert!(said(&error).1.ends_with("invalid value: integer `256`, expected u8"), "{error:?}");
}

async fn kinds_of_errors_are_those_of_both(conn: &mut impl SqlConn) {
    conn.execute_batch("CREATE TABLE t (id BIGINT PRIMARY KEY, pieces BIGINT NOT NULL CHECK (pieces >= 0))")
        .await
        .unwrap();
    let sql = "INSERT INTO t (id, pieces) VALUES ($1, $2)";
    conn.execute(sql, &[&1, &1]).await.unwrap();
    let unique = conn.execute(sql, &[&1, &1]).await.unwrap_err();
    assert_eq!(unique.kind(), SqlErrorKind::UniqueViolation);
    let negative = conn.execute(sql, &[&2, &-1]).await.unwrap_err();
    assert_eq!(negative.kind(), SqlErrorKind::ConstraintViolation);
    let null = conn.execute(sql, &[&2, &None::<i64>]).await.unwrap_err();
    assert_eq!(null.kind(), SqlErrorKind::ConstraintViolation);
    let table = conn.execute("INSERT INTO missing VALUES ($1)", &[&1]).await.unwrap_err();
    assert_eq!(table.kind(), SqlErrorKind::Database);
    let huge = conn.execute(sql, &[&3, &Json(BTreeMap::from([((1, 2), 3)]))]).await.unwrap_err();
    assert_eq!(said(&huge), (SqlErrorKind::Parameter, "key must be a string".to_owned()));
}

fn said(error: &saga_sql::SqlError) -> (SqlErrorKind, String) {
    (error.kind(), error.source().expect("a source").to_string())
}

#[saga_step(compensate = release)]
async fn reserve(tx: &mut impl SqlConn, pieces: i64) -> Result<i64, StepError> {
    let left =
        tx.query_opt("UPDATE stock SET pieces = pieces - $1 WHERE pieces >= $1 RETURNING pieces", &[&pieces]).await?;
    left.ok_or_else(|| StepError::reject("out of stock"))
}

#[saga_compensation]
async fn release(tx: &mut impl SqlConn, pieces: i64) -> Result<(), StepError> {
    tx.execute("UPDATE stock SET pieces = pieces + $1", &[&pieces]).await?;
    Ok(())
}

#[saga_step(no_compensation)]
async fn refuse_odd(tx: &mut impl SqlConn, pieces: i64) -> Result<(), StepError> {
    let odd: i64 = tx.query_one("SELECT CAST($1 AS BIGINT) % 2", &[&pieces]).await?;
    if odd == 0 { Ok(()) } else { Err(StepError::reject("an odd number")) }
}

fn order<S: SqlStore>() -> Saga<S, i64> {
    Saga::named("order").input().step::<reserve>().step::<refuse_odd>().build().unwrap()
}

async fn one_definition_runs_on_both<S: SqlStore>(store: S) {
    let created = store.transaction(async |conn| -> Result<(), anyhow::Error> {
        conn.execute_batch("CREATE TABLE stock (pieces BIGINT NOT NULL CHECK (pieces >= 0))").await?;
        conn.execute("INSERT INTO stock VALUES ($1)", &[&10]).await?;
        Ok(())
    });
    created.await.unwrap();
    let order = order::<S>();
    let store = std::sync::Arc::new(store);
    let runtime = Runtime::builder(std::sync::Arc::clone(&store)).saga(&order).start().await.unwrap();
    for (key, pieces, completes) in [("a", 4, true), ("b", 3, false), ("c", 8, false), ("d", 6, true)] {
        let outcome = runtime.start(&order, key, pieces).await.unwrap().outcome().await.unwrap();
        assert_eq!(matches!(outcome, Outcome::Completed { .. }), completes, "{key}: {outcome:?}");
    }
    runtime.shutdown().await;
    let left = store.transaction(async |conn| -> Result<i64, anyhow::Error> {
        Ok(conn.query_one("SELECT pieces FROM stock", &[]).await?)
    });
    assert_eq!(left.await.unwrap(), 0);

    let undone = store.transaction(async |conn| -> Result<(), anyhow::Error> {
        conn.execute("UPDATE stock SET pieces = 5", &[]).await?;
        anyhow::bail!("the application changed its mind")
    });
    assert_eq!(undone.await.unwrap_err().to_string(), "the application changed its mind");
    let left = store.transaction(async |conn| -> Result<i64, anyhow::Error> {
        Ok(conn.query_one("SELECT pieces FROM stock", &[]).await?)
    });
    assert_eq!(left.await.unwrap(), 0);
}

#[tokio::test]
async fn sqlite_says_which_parameter_is_missing() {
    let mut conn = saga_sqlite::rusqlite::Connection::open_in_memory().unwrap();
    let missing = SqlConn::execute(&mut conn, "SELECT $1, $2", &[&1]).await.unwrap_err();
    assert_eq!(said(&missing).1, "the statement has 2 parameters, and 1 values were given");
    let unnumbered = SqlConn::execute(&mut conn, "SELECT ?", &[&1]).await.unwrap_err();
    assert_eq!(said(&unnumbered).1, "the statement has no parameter $1; parameters are written $1, $2 and so on");
}

#[tokio::test]
async fn a_type_that_postgres_alone_has_is_named_unless_nobody_reads_it() {
    let database = saga_servers::shared::database("saga_sql").await.unwrap();
    let mut conn = PgConnection::connect(database.url()).await.unwrap();
    let sql = "SELECT 1.5::numeric AS price, 'TEA' AS sku, 2 AS pieces";
    let error = conn.query_one::<(f64, String, u32)>(sql, &[]).await.unwrap_err();
    let expected = "column `price`: it has the type NUMERIC, which only this database has; cast it in the query, as in \
                    `column::text`";
    assert_eq!(said(&error), (SqlErrorKind::Row, expected.to_owned()));
    let item: Item = conn.query_one(sql, &[]).await.unwrap();
    assert_eq!(item, Item { sku: "TEA".to_owned(), pieces: 2 });
}

/// `COMMIT` of such a transaction succeeds, and rolls it back.
#[tokio::test]
async fn postgres_writes_nothing_behind_a_failed_statement_and_says_so() {
    let database = saga_servers::shared::database("saga_sql").await.unwrap();
    let store = PostgresStore::connect(database.url()).await.unwrap();
    let made = store.transaction(async |conn| -> Result<(), anyhow::Error> {
        Ok(conn.execute_batch("CREATE TABLE seats (seat BIGINT PRIMARY KEY)").await?)
    });
    made.await.unwrap();
    for taken in [false, true] {
        let reserved = store.transaction(async move |conn| -> Result<&str, anyhow::Error> {
            conn.execute("INSERT INTO seats VALUES ($1)", &[&i64::from(taken)]).await?;
            match conn.execute("INSERT INTO seats VALUES (9)", &[]).await {
                Err(error) if error.kind() == SqlErrorKind::UniqueViolation => Ok("taken"),
                written => Ok(written.map(|_| "reserved")?),
            }
        });
        let reserved = reserved.await;
        if taken {
            let said = reserved.unwrap_err().to_string();
            assert!(said.contains("a statement failed and the closure returned `Ok` all the same"), "{said}");
        } else {
            assert_eq!(reserved.unwrap(), "reserved");
        }
    }
    let seats = store.transaction(async |conn| -> Result<Vec<i64>, anyhow::Error> {
        Ok(conn.query("SELECT seat FROM seats ORDER BY seat", &[]).await?)
    });
    assert_eq!(seats.await.unwrap(), [0, 9]);
}

/// A pooler in transaction mode gives each transaction another session, in which a prepared statement is unknown.
/// Also where the store itself has not used the connection yet.
#[tokio::test]
async fn a_store_prepares_the_statements_of_the_application() {
    let database = saga_servers::shared::database("saga_sql").await.unwrap();
    let store = PostgresStore::connect(database.url()).await.unwrap();
    let prepared: Result<i64, Box<dyn std::error::Error + Send + Sync>> = store
        .write(async |conn| {
            let own = "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%own statement%'";
            let _: i64 = conn.query_one(own, &[]).await?;
            Ok(conn.query_one(own, &[]).await?)
        })
        .await;
    assert_eq!(prepared.unwrap(), 1);
}

#[tokio::test]
async fn statements_run_behind_pgbouncer() {
    let database = saga_servers::shared::database("saga_sql").await.unwrap();
    let options: PgConnectOptions = database.pgbouncer_url().unwrap().parse().unwrap();
    let options = PostgresOptions::new(options).pgbouncer();
    let store = PostgresStore::connect_with(options).await.unwrap();
    one_definition_runs_on_both(store).await;
}

macro_rules! on_both {
    ($($test:ident)*) => {
        mod sqlite {
            $(
                #[tokio::test]
                async fn $test() {
                    super::$test(&mut saga_sqlite::rusqlite::Connection::open_in_memory().unwrap()).await;
                }
            )*

            #[tokio::test]
            async fn one_definition_runs_on_both() {
                let folder = tempfile::tempdir().unwrap();
                super::one_definition_runs_on_both(super::SqliteStore::open(folder.path().join("s.db")).await.unwrap()).await;
            }
        }

        mod postgres {
            use saga_postgres::sqlx::{Connection as _, PgConnection};

            $(
                #[tokio::test]
                async fn $test() {
                    let database = saga_servers::shared::database("saga_sql").await.unwrap();
                    super::$test(&mut PgConnection::connect(database.url()).await.unwrap()).await;
                }
            )*

            #[tokio::test]
            async fn one_definition_runs_on_both() {
                let database = saga_servers::shared::database("saga_sql").await.unwrap();
                super::one_definition_runs_on_both(super::PostgresStore::connect(database.url()).await.unwrap()).await;
            }
        }
    };
}

on_both! {
    values_come_back_as_they_went_in
    a_row_is_a_tuple_or_a_single_value_too
    what_is_wrong_is_said_with_the_statement
    kinds_of_errors_are_those_of_both
}
