//! A thousand equal requests at once.

use std::collections::BTreeMap;

use axum::Router;
use axum::routing::post;
use http::StatusCode;
use saga_core::memory::MemoryStore;
use saga_http::{Idempotency, Tx};
use saga_postgres::{PostgresOptions, PostgresStore, sqlx};
use saga_sqlite::SqliteStore;

use crate::support::application::user;
use crate::support::{Answer, Application, Ledger, Order, request, send};

const REQUESTS: usize = 1_000;

/// Sends equal requests to these replicas in turn, all at once.
async fn all_at_once(replicas: &[&Router], prefer: Option<&'static str>) -> Vec<Answer> {
    let all: Vec<_> = (0..REQUESTS)
        .map(|number| {
            let app = replicas[number % replicas.len()].clone();
            let mut request = request("/payments", "k-1");
            if let Some(prefer) = prefer {
                request = request.header("prefer", prefer);
            }
            tokio::spawn(async move { send(&app, request, Order::of("rent").text()).await })
        })
        .collect();
    let mut answers = Vec::new();
    for answer in all {
        answers.push(answer.await.unwrap());
    }
    answers
}

/// One effect; every answer is the same response or 409. Answers how often each status was there.
fn check(answers: &[Answer]) -> BTreeMap<u16, usize> {
    let mut statuses = BTreeMap::new();
    for answer in answers {
        *statuses.entry(answer.status.as_u16()).or_default() += 1;
        match answer.status {
            StatusCode::OK => assert_eq!(answer.body, b"1 of rent"),
            StatusCode::CONFLICT => {}
            _ => panic!("{answer:?}"),
        }
    }
    let firsts = answers.iter().filter(|answer| answer.status == StatusCode::OK && !answer.is_replayed()).count();
    assert_eq!(firsts, 1, "{statuses:?}");
    statuses
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_equal_requests_at_two_replicas_have_one_effect() {
    let one = Application::<PostgresStore>::start().await;
    let store = PostgresStore::connect(one.place.url()).await.unwrap();
    let other = Application::on(store, saga_servers::shared::database("unused").await.unwrap()).await;
    let statuses = check(&all_at_once(&[&one.app, &other.app], None).await);
    assert_eq!((one.store.payments("rent").await, one.calls() + other.calls()), (1, 1), "{statuses:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_that_wait_all_get_the_response() {
    let one = Application::<PostgresStore>::start().await;
    let store = PostgresStore::connect(one.place.url()).await.unwrap();
    let other = Application::on(store, saga_servers::shared::database("unused").await.unwrap()).await;
    let statuses = check(&all_at_once(&[&one.app, &other.app], Some("wait=60")).await);
    assert_eq!((one.store.payments("rent").await, statuses), (1, BTreeMap::from([(200, REQUESTS)])));
}

/// How many requests of different keys are sent at once through the pooler: more than it has connections.
const THROUGH_POOLER: usize = 200;

/// Behind a pooler a handler prepares nothing itself.
async fn pays_unprepared(mut tx: Tx<'_, PostgresStore>, name: String) -> StatusCode {
    let insert = sqlx::query("INSERT INTO payments (name) VALUES ($1)").bind(name).persistent(false);
    insert.execute(tx.conn()).await.map_or(StatusCode::INTERNAL_SERVER_ERROR, |_| StatusCode::OK)
}

/// The pooler gives each transaction any of its connections, whether or not it has the prepared statements.
#[tokio::test(flavor = "multi_thread")]
async fn requests_through_pgbouncer_find_their_statements_on_any_connection() {
    let (store, database) = PostgresStore::fresh().await;
    let options = PostgresOptions::from_url(&database.pgbouncer_url().unwrap()).unwrap().pgbouncer();
    let pooled = PostgresStore::connect_with(options).await.unwrap();
    let idempotency = Idempotency::of_store(pooled).principal(user);
    let app = Router::new().route("/payments", post(idempotency.handler(pays_unprepared)));
    for is_replay in [false, true] {
        let sent = (0..THROUGH_POOLER).map(|number| {
            let (app, name) = (app.clone(), format!("rent {number}"));
            tokio::spawn(async move { send(&app, request("/payments", &format!("k-{number}")), name).await })
        });
        for answer in sent.collect::<Vec<_>>() {
            let answer = answer.await.unwrap();
            assert_eq!((answer.status, answer.is_replayed()), (StatusCode::OK, is_replay), "{answer:?}");
        }
    }
    assert_eq!(store.payments("rent 7").await, 1);
}

async fn at_one_process<S: Ledger>() {
    let shop = Application::<S>::start().await;
    check(&all_at_once(&[&shop.app], None).await);
    assert_eq!((shop.store.payments("rent").await, shop.calls()), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_equal_requests_on_sqlite_have_one_effect() {
    at_one_process::<SqliteStore>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_equal_requests_in_memory_have_one_effect() {
    at_one_process::<MemoryStore>().await;
}
