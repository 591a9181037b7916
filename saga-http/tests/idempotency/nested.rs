//! Transactions that a handler on PostgreSQL nests in the one that it was given.

use axum::Router;
use axum::routing::post;
use http::StatusCode;
use saga_core::store::StoreError;
use saga_http::{Idempotency, Tx};
use saga_postgres::PostgresStore;
use saga_postgres::sqlx::{AssertSqlSafe, Connection as _, Executor as _, raw_sql};

use crate::support::application::user;
use crate::support::{Ledger, request, send};

async fn begins(mut tx: Tx<'_, PostgresStore>) -> String {
    let mut nested = tx.conn().begin().await.unwrap();
    PostgresStore::pay(&mut nested, "nested").await.unwrap();
    nested.commit().await.is_ok().to_string()
}

/// What a handler may send to end its transaction. The last ones leave another one open, or close the cursor of the guard.
const ENDINGS: [&str; 7] = [
    "COMMIT",
    "COMMIT AND CHAIN",
    "COMMIT; BEGIN",
    "ROLLBACK",
    "ROLLBACK; BEGIN",
    "ROLLBACK; BEGIN; INSERT INTO payments (name) VALUES ('ended')",
    "CLOSE ALL",
];

/// Pays, sends what the request says, and answers as if all were well.
async fn ends(mut tx: Tx<'_, PostgresStore>, ending: String) -> &'static str {
    PostgresStore::pay(tx.conn(), "ended").await.unwrap();
    drop(raw_sql(AssertSqlSafe(ending)).execute(tx.conn()).await);
    "done"
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_ends_its_transaction_has_no_effect_and_keeps_nothing() {
    let (store, _database) = PostgresStore::fresh().await;
    let idempotency = Idempotency::of_store(store.clone()).principal(user);
    let app = Router::new().route("/ends", post(idempotency.handler(ends)));
    for (number, ending) in ENDINGS.into_iter().enumerate() {
        let key = format!("k-{number}");
        for _ in 0..2 {
            let failed = send(&app, request("/ends", &key), ending).await;
            assert_eq!((failed.status, failed.is_replayed()), (StatusCode::INTERNAL_SERVER_ERROR, false), "{ending}");
        }
        assert_eq!(store.payments("ended").await, 0, "{ending}");
    }
    let paid = send(&app, request("/ends", "k-0"), "SELECT 1").await;
    assert_eq!((paid.status, store.payments("ended").await), (StatusCode::OK, 1));
}

/// Ends its transaction, pays outside of it, and refuses.
async fn ends_and_refuses(mut tx: Tx<'_, PostgresStore>, ending: String) -> StatusCode {
    drop(raw_sql(AssertSqlSafe(ending)).execute(tx.conn()).await);
    StatusCode::UNPROCESSABLE_ENTITY
}

/// What it wrote outside cannot be undone, so its refusal would not be true.
#[tokio::test(flavor = "multi_thread")]
async fn the_refusal_of_a_handler_that_ends_its_transaction_is_not_kept() {
    let (store, _database) = PostgresStore::fresh().await;
    let idempotency = Idempotency::of_store(store).principal(user);
    let app = Router::new().route("/refuses", post(idempotency.handler(ends_and_refuses)));
    for (key, ending) in [("k-1", "ROLLBACK"), ("k-2", "ROLLBACK; BEGIN"), ("k-3", "COMMIT")] {
        for _ in 0..2 {
            let failed = send(&app, request("/refuses", key), ending).await;
            assert_eq!((failed.status, failed.is_replayed()), (StatusCode::INTERNAL_SERVER_ERROR, false), "{ending}");
        }
    }
    for is_replayed in [false, true] {
        // A statement that fails leaves the transaction open, so the refusal is kept.
        let refused = send(&app, request("/refuses", "k-4"), "SELECT 1 / 0").await;
        assert_eq!((refused.status, refused.is_replayed()), (StatusCode::UNPROCESSABLE_ENTITY, is_replayed));
    }
}

/// Pays, commits, and answers that it could not.
async fn commits_and_fails(mut tx: Tx<'_, PostgresStore>) -> StatusCode {
    PostgresStore::pay(tx.conn(), "failed").await.unwrap();
    drop(raw_sql("COMMIT").execute(tx.conn()).await);
    StatusCode::SERVICE_UNAVAILABLE
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_guard_a_request_that_failed_would_have_an_effect() {
    for (is_guarded, effects) in [(true, 0), (false, 1)] {
        let (store, _database) = PostgresStore::fresh().await;
        if !is_guarded {
            remove_guard(&store).await;
        }
        let idempotency = Idempotency::of_store(store.clone()).principal(user);
        let app = Router::new().route("/fails", post(idempotency.handler(commits_and_fails)));
        for _ in 0..2 {
            let failed = send(&app, request("/fails", "k-1"), "").await;
            assert_eq!(failed.status, StatusCode::SERVICE_UNAVAILABLE);
        }
        assert_eq!(store.payments("failed").await, effects, "guarded: {is_guarded}");
    }
}

async fn remove_guard(store: &PostgresStore) {
    let spoiled = "CREATE OR REPLACE FUNCTION saga.refuse_request_commit() RETURNS void LANGUAGE sql AS 'SELECT'";
    let removed: Result<(), StoreError> = store
        .write(async |conn| {
            conn.execute(spoiled).await.unwrap();
            Ok(())
        })
        .await;
    removed.unwrap();
}

async fn sets_a_savepoint(mut tx: Tx<'_, PostgresStore>) -> String {
    let conn = tx.conn();
    conn.execute("SAVEPOINT mine").await.unwrap();
    PostgresStore::pay(conn, "undone").await.unwrap();
    conn.execute("ROLLBACK TO SAVEPOINT mine").await.unwrap();
    PostgresStore::pay(conn, "kept").await.unwrap().to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_cannot_commit_what_it_nested() {
    let (store, _database) = PostgresStore::fresh().await;
    let idempotency = Idempotency::of_store(store.clone()).principal(user);
    let app = Router::new()
        .route("/begins", post(idempotency.handler(begins)))
        .route("/savepoint", post(idempotency.handler(sets_a_savepoint)));
    let failed = send(&app, request("/begins", "k-1"), "").await;
    assert_eq!((failed.status, store.payments("nested").await), (StatusCode::INTERNAL_SERVER_ERROR, 0));
    let kept = send(&app, request("/savepoint", "k-2"), "").await;
    assert_eq!((kept.status, &kept.body[..]), (StatusCode::OK, &b"1"[..]));
    assert_eq!((store.payments("undone").await, store.payments("kept").await), (0, 1));
}
