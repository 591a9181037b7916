//! Transactions that a handler on PostgreSQL nests in the one that it was given.

use axum::Router;
use axum::routing::post;
use http::StatusCode;
use saga_http::{Idempotency, Tx};
use saga_postgres::PostgresStore;
use saga_postgres::sqlx::{Connection as _, Executor as _};

use crate::support::application::user;
use crate::support::{Ledger, request, send};

async fn begins(mut tx: Tx<'_, PostgresStore>) -> String {
    let mut nested = tx.conn().begin().await.unwrap();
    PostgresStore::pay(&mut nested, "nested").await.unwrap();
    nested.commit().await.is_ok().to_string()
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
