//! Servers that go away, and a server behind PgBouncer.

use std::time::Duration;

use crate::support::{Body, Notes as _, Place, address, begun, definition, member, new_saga, status};
use saga_core::store::{
    ClaimRequest, HandlerVerdict, Outbox as _, RetryClass, Sagas as _, StartIn as _, Status, StoreError, Work as _,
};
use saga_postgres::{PostgresOptions, PostgresStore};
use saga_servers::{PgBouncer, PostgresServer};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _};

/// Completes a saga of one step, which names its table in full: behind PgBouncer no session has a search path of its own.
async fn step(store: &PostgresStore, key: &str) -> Result<(), saga_core::store::TransactError> {
    let claim = begun(store, key).await;
    let insert = format!("INSERT INTO {}.notes (text) VALUES ($1)", store.schema());
    let text = key.to_owned();
    let body = Body::new(&[claim]).then(move |conn| {
        let (insert, text) = (insert.clone(), text.clone());
        Box::pin(async move {
            let written = sqlx::query(AssertSqlSafe(insert)).bind(text).persistent(false).execute(conn).await;
            if written.is_ok() { HandlerVerdict::Keep } else { HandlerVerdict::RollBack }
        })
    });
    body.transact(store).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pgbouncer_in_transaction_mode_stands_between() {
    let place = Place::new().await;
    let bouncer = PgBouncer::start(&address()).await.unwrap();
    let options = || PostgresOptions::from_url(bouncer.url()).unwrap().schema(&place.schema).unwrap().pgbouncer();
    let stores = [
        PostgresStore::connect_with(options()).await.unwrap(),
        PostgresStore::connect_with(options().connections_max(1)).await.unwrap(),
    ];
    let mut steps = Vec::new();
    for number in 0..40_usize {
        let store = stores[number % 2].clone();
        steps.push(tokio::spawn(async move { step(&store, &format!("k-{number}")).await }));
    }
    for step in steps {
        step.await.unwrap().unwrap();
    }
    assert_eq!(place.notes().await.len(), 40);
    let lease = member(&stores[0], Duration::from_mins(1)).await;
    begun(&stores[1], "k-late").await;
    let request = ClaimRequest { lease, limit: 10, definitions: [definition()].into(), takes_over: true };
    assert_eq!(stores[0].claim(request).await.unwrap().work.len(), 1);
    assert_eq!(stores[1].lease_lanes(lease, 9).await.unwrap(), []);
    assert_eq!(stores[1].orphaned(9).await.unwrap(), []);
    // An application's transaction through the same PgBouncer, prepared statements and all.
    let mut conn = place.connection().await;
    let mut tx = conn.begin().await.unwrap();
    stores[0].start_in(&mut tx, new_saga(&stores[0], "k-in").await).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(status(&stores[1], "k-in").await, Some(Status::Running));
    for store in &stores {
        store.close().await;
    }
    drop(bouncer);
    place.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_and_comes_back_loses_nothing_that_was_acknowledged() {
    let mut server = PostgresServer::start().await.unwrap();
    let options = PostgresOptions::from_url(&server.url()).unwrap().acquire_timeout(Duration::from_secs(2));
    let store = PostgresStore::connect_with(options).await.unwrap();
    let mut conn = sqlx::PgConnection::connect(&server.url()).await.unwrap();
    conn.execute("CREATE TABLE saga.notes (text text NOT NULL)").await.unwrap();
    step(&store, "k-1").await.unwrap();
    let open = begun(&store, "k-2").await;
    let next = new_saga(&store, "k-3").await;
    server.kill().await.unwrap();
    // Nobody knows of a commit whose connection broke; of all else it is certain that it did not happen.
    let answers: [Option<StoreError>; 3] = [
        store.start(vec![next.clone()]).await.err(),
        store.release_work(&[open.work]).await.err(),
        Body::new(std::slice::from_ref(&open))
            .sends("SELECT 1")
            .transact(&store)
            .await
            .err()
            .map(|failed| failed.error),
    ];
    for error in answers {
        let error = error.expect("the server is gone");
        assert!(matches!(error.class(), RetryClass::Transient | RetryClass::Unknown), "{error:?}");
    }
    server.restart().await.unwrap();
    // It comes back by itself: each connection that the old server had fails once at most.
    let mut failed = 0;
    while let Err(error) = store.start(vec![next.clone()]).await {
        assert!(matches!(error.class(), RetryClass::Transient | RetryClass::Unknown), "{error:?}");
        failed += 1;
        assert!(failed <= 10, "the store does not come back: {error:?}");
    }
    Body::new(&[open]).sends("SELECT 1").transact(&store).await.unwrap();
    step(&store, "k-4").await.unwrap();
    assert_eq!(status(&store, "k-1").await, Some(Status::Completed));
    assert_eq!(status(&store, "k-2").await, Some(Status::Completed));
    assert_eq!(status(&store, "k-3").await, Some(Status::Running));
    store.close().await;
}
