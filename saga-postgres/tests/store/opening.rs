//! Opening a store: what is refused, in one sentence that says what to do, and what is created.

use std::time::Duration;

use crate::support::{Place, complete, server};
use saga_core::store::{Ids as _, RetryClass, Store as _, StoreError, StoreErrorKind};
use saga_postgres::{PostgresOptions, PostgresStore};
use sqlx::{AssertSqlSafe, Executor as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// The error of opening, which must not tell the password.
async fn refused(options: PostgresOptions) -> StoreError {
    let debug = format!("{options:?}");
    let error = PostgresStore::connect_with(options).await.expect_err("it should have been refused");
    for text in [debug, format!("{error:?}"), error.to_string()] {
        assert!(!text.contains("hush-hush"), "the password was told: {text}");
    }
    assert_eq!(error.to_string().lines().count(), 1, "{error}");
    error
}

/// A server that asks for a password and takes none.
async fn inaccessible() -> (u16, tokio::task::JoinHandle<()>) {
    const REFUSAL: &[u8] = b"SFATAL\0VFATAL\0C28P01\0Mpassword authentication failed for user \"shop\"\0\0";
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut message = vec![0; 4096];
        let read = client.read(&mut message).await.unwrap();
        // The first message may ask for encryption, which there is none of.
        if read == 8 {
            client.write_all(b"N").await.unwrap();
            _ = client.read(&mut message).await.unwrap();
        }
        // Asks for a password in clear text, reads it, and says no.
        client.write_all(&[b'R', 0, 0, 0, 8, 0, 0, 0, 3]).await.unwrap();
        _ = client.read(&mut message).await.unwrap();
        let length = u32::try_from(REFUSAL.len() + 4).unwrap();
        client.write_all(&[b"E".as_slice(), &length.to_be_bytes(), REFUSAL].concat()).await.unwrap();
    });
    (port, serving)
}

#[tokio::test]
async fn a_wrong_password_is_told_without_the_password() {
    let (port, serving) = inaccessible().await;
    let url = format!("postgres://shop:hush-hush@127.0.0.1:{port}/orders");
    let error = refused(PostgresOptions::from_url(&url).unwrap()).await;
    assert_eq!(error.class(), RetryClass::Permanent, "{error}");
    for part in [format!("127.0.0.1:{port}"), "\"shop\"".to_owned(), "check the user name and the password".to_owned()]
    {
        assert!(error.to_string().contains(&part), "{error}");
    }
    serving.await.unwrap();
}

#[tokio::test]
async fn an_unknown_database_is_named() {
    let error = refused(PostgresOptions::new(server().database("nowhere").password("hush-hush"))).await;
    assert_eq!((error.kind(), error.class()), (StoreErrorKind::NotAStore, RetryClass::Permanent));
    assert!(error.to_string().contains("has no database \"nowhere\""), "{error}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_at_once() {
    // A port that was free a moment ago.
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let options = PostgresOptions::from_url(&format!("postgres://shop:hush-hush@127.0.0.1:{port}/orders")).unwrap();
    let error = refused(options).await;
    assert_eq!((error.kind(), error.class()), (StoreErrorKind::Unavailable, RetryClass::Transient));
    assert!(error.to_string().contains(&format!("127.0.0.1:{port}")), "{error}");
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let options = PostgresOptions::from_url(&format!("postgres://shop:hush-hush@127.0.0.1:{port}/orders")).unwrap();
    let error = refused(options.acquire_timeout(Duration::from_millis(50))).await;
    assert_eq!((error.kind(), error.class()), (StoreErrorKind::Unavailable, RetryClass::Transient), "{error}");
}

#[test]
fn what_is_no_address_is_refused_and_not_repeated() {
    for text in ["", "orders", "mysql://shop:hush-hush@db/orders", "postgres://shop:hush-hush@db:port/orders"] {
        let error = PostgresOptions::from_url(text).unwrap_err();
        assert!(error.to_string().contains("write postgres://user:password@host:port/database"), "{error}");
        assert!(!format!("{error:?}").contains("hush"), "{error:?}");
    }
}

#[test]
fn a_schema_name_is_a_plain_name() {
    let options = || PostgresOptions::new(server());
    let long = "s".repeat(64);
    for name in ["", "sa\"ga", "saga'", "saga; DROP SCHEMA public", "1saga", "pg_saga", "PG_SAGA", "säga", &long, "a.b"]
    {
        let error = options().schema(name).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Misuse);
        assert!(error.to_string().contains("cannot be the name of the schema"), "{error}");
    }
    for name in ["saga", "orders_saga", "_s2", "Saga", "select"] {
        options().schema(name).unwrap();
    }
}

#[tokio::test]
async fn a_schema_with_an_odd_name_works() {
    let place = Place::new().await;
    // A reserved word in capitals: only a quoted name is that one.
    let odd = "SELECT";
    let mut conn = place.connection().await;
    conn.execute("DROP SCHEMA IF EXISTS \"SELECT\" CASCADE").await.unwrap();
    let store = PostgresStore::connect_with(place.options().schema(odd).unwrap()).await.unwrap();
    complete(&store, "k-1").await.unwrap();
    assert_eq!(store.schema(), odd);
    store.close().await;
    conn.execute("DROP SCHEMA \"SELECT\" CASCADE").await.unwrap();
    place.remove().await;
}

#[tokio::test]
async fn a_user_without_rights_is_told_which_are_missing() {
    let place = Place::new().await;
    let mut conn = place.connection().await;
    let user = format!("guest_{}", std::process::id());
    let run = |sql: String| sqlx::raw_sql(AssertSqlSafe(sql));
    conn.execute(run(format!("DROP ROLE IF EXISTS {user}; CREATE ROLE {user} LOGIN PASSWORD 'hush-hush'")))
        .await
        .unwrap();
    let guest = PostgresOptions::new(place.connect.clone().username(&user).password("hush-hush"));
    // It may not make a schema.
    let error = refused(guest.clone().schema("nowhere_yet").unwrap()).await;
    assert_eq!((error.kind(), error.class()), (StoreErrorKind::NotWritable, RetryClass::Permanent), "{error}");
    assert!(error.to_string().contains(&format!("user \"{user}\" lacks a right")), "{error}");
    // In a schema that was made for it, it may do everything.
    let made = format!("made_{}", std::process::id());
    conn.execute(run(format!("CREATE SCHEMA {made} AUTHORIZATION {user}"))).await.unwrap();
    let store = PostgresStore::connect_with(guest.schema(&made).unwrap()).await.unwrap();
    assert!(store.reserve_ids(1).await.is_ok());
    store.close().await;
    conn.execute(run(format!("DROP SCHEMA {made} CASCADE; DROP ROLE {user}"))).await.unwrap();
    place.remove().await;
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_left_as_it_is() {
    let place = Place::new().await;
    place.open().await.close().await;
    let mut conn = place.connection().await;
    let note = format!("INSERT INTO {}.migrations (number, name) VALUES (4711, 'later')", place.schema);
    conn.execute(AssertSqlSafe(note)).await.unwrap();
    let error = refused(place.options()).await;
    assert_eq!(error.kind(), StoreErrorKind::NewerSchema);
    assert!(error.to_string().contains("is at migration 4711, written by a newer version"), "{error}");
    place.remove().await;
}

#[tokio::test]
async fn a_migration_that_was_applied_by_half_is_refused() {
    let damages = [
        ("DROP TABLE {}.parked", "has no table \"parked\""),
        ("DROP TABLE {}.migrations", "holds tables of the runtime without a record"),
        ("UPDATE {}.migrations SET name = 'mine' WHERE number = 1", "records migrations that this program"),
        ("DELETE FROM {}.migrations WHERE number = 1", "records migrations that this program"),
    ];
    for (damage, said) in damages {
        let place = Place::new().await;
        place.open().await.close().await;
        let mut conn = place.connection().await;
        conn.execute(AssertSqlSafe(damage.replace("{}", &place.schema))).await.unwrap();
        let error = refused(place.options()).await;
        assert_eq!((error.kind(), error.class()), (StoreErrorKind::Corrupt, RetryClass::Permanent), "{error}");
        assert!(error.to_string().contains(said), "{damage}: {error}");
        place.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_first_starts_at_once_take_turns() {
    let place = Place::new().await;
    let starts: Vec<_> = (0..8).map(|_| tokio::spawn(PostgresStore::connect_with(place.options()))).collect();
    for start in starts {
        start.await.unwrap().unwrap().close().await;
    }
    let store = place.open().await;
    complete(&store, "k-1").await.unwrap();
    store.close().await;
    place.remove().await;
}

#[tokio::test]
async fn durability_is_what_the_server_is_set_to() {
    use saga_core::store::Durability;
    let place = Place::new().await;
    let mut conn = place.connection().await;
    let fsync: String = sqlx::query_scalar("SELECT current_setting('fsync')").fetch_one(&mut conn).await.unwrap();
    for (synchronous, survives) in
        [("on", Durability::Full), ("off", Durability::Process("synchronous_commit=off".into()))]
    {
        let connect = place.connect.clone().options([("synchronous_commit", synchronous)]);
        let options = PostgresOptions::new(connect).schema(&place.schema).unwrap();
        let store = PostgresStore::connect_with(options).await.unwrap();
        let expected = if fsync == "on" { survives } else { Durability::Process("fsync=off".into()) };
        assert_eq!(store.capabilities().durability, expected);
        store.close().await;
    }
    place.remove().await;
}

#[tokio::test]
async fn the_pool_of_the_application_is_used() {
    let place = Place::new().await;
    let pool = PostgresStore::pool_options().max_connections(1).connect_with(place.connect.clone()).await.unwrap();
    let store = PostgresStore::from_pool(pool.clone(), place.options()).await.unwrap();
    complete(&store, "k-1").await.unwrap();
    assert_eq!(place.notes().await, ["k-1"]);
    store.close().await;
    assert!(!pool.is_closed(), "the pool is the application's");
    pool.close().await;
    place.remove().await;
}

/// The tables as the first version made them.
async fn first_version(place: &Place) -> sqlx::PgConnection {
    let mut conn = place.connection().await;
    let schema = &place.schema;
    let tables = format!(
        "CREATE TABLE {schema}.migrations (number integer PRIMARY KEY, name text NOT NULL, \
         applied_at timestamptz NOT NULL DEFAULT clock_timestamp())"
    );
    conn.execute(sqlx::raw_sql(AssertSqlSafe(tables))).await.unwrap();
    let migrations = [
        (1, "tables", include_str!("../../migrations/0001_tables.sql")),
        (2, "steps", include_str!("../../migrations/0002_steps.sql")),
        (3, "shapes", include_str!("../../migrations/0003_shapes.sql")),
    ];
    for (number, name, sql) in migrations {
        conn.execute(sqlx::raw_sql(AssertSqlSafe(sql.replace("{schema}", schema)))).await.unwrap();
        let note = format!("INSERT INTO {schema}.migrations (number, name) VALUES ({number}, '{name}')");
        conn.execute(AssertSqlSafe(note)).await.unwrap();
    }
    conn
}

#[tokio::test]
async fn a_migration_does_not_hold_up_those_who_work_while_it_waits_for_a_dump() {
    let place = Place::new().await;
    let mut dump = first_version(&place).await;
    dump.execute("BEGIN").await.unwrap();
    let read = format!("SELECT count(*) FROM {}.work", place.schema);
    dump.execute(AssertSqlSafe(read.clone())).await.unwrap();
    // More often than it can try while the worker works.
    let options = place.options().migration_tries(10_000);
    let opening = tokio::spawn(async move { PostgresStore::connect_with(options).await });
    let mut worker = place.connection().await;
    // It stands behind the migration for half a second at most, each time it tries.
    worker.execute("SET lock_timeout = '10s'").await.unwrap();
    for _ in 0..20 {
        worker.execute(AssertSqlSafe(read.clone())).await.expect("the migration waits without a limit");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(!opening.is_finished(), "the table is held");
    dump.execute("COMMIT").await.unwrap();
    let store = opening.await.unwrap().unwrap();
    complete(&store, "k-1").await.unwrap();
    store.close().await;
    place.remove().await;
}

#[tokio::test]
async fn a_migration_that_waits_too_long_says_for_what() {
    let place = Place::new().await;
    let mut dump = first_version(&place).await;
    dump.execute("BEGIN").await.unwrap();
    dump.execute(AssertSqlSafe(format!("LOCK TABLE {}.work IN ACCESS SHARE MODE", place.schema))).await.unwrap();
    let error = refused(place.options().migration_tries(2)).await;
    assert_eq!(error.kind(), StoreErrorKind::Conflict);
    let wanted = "could not be brought to migration 21: 2 times another session held one of its tables";
    assert!(error.to_string().contains(wanted), "{error}");
    dump.execute("ROLLBACK").await.unwrap();
    place.open().await.close().await;
    place.remove().await;
}

/// A statement that commits by itself must see what was committed while it waited for a lock.
#[tokio::test]
async fn the_defaults_of_a_role_do_not_change_how_the_store_reads() {
    let place = Place::new().await;
    let of_role = [("default_transaction_isolation", "repeatable read"), ("bytea_output", "escape")];
    let options = PostgresOptions::new(server().options(of_role)).schema(&place.schema).unwrap();
    let store = PostgresStore::connect_with(options).await.unwrap();
    for (setting, expected) in [("transaction_isolation", "read committed"), ("bytea_output", "hex")] {
        let shown: String =
            sqlx::query_scalar("SELECT current_setting($1)").bind(setting).fetch_one(store.pool()).await.unwrap();
        assert_eq!(shown, expected, "{setting}");
    }
    store.close().await;
    place.remove().await;
}
