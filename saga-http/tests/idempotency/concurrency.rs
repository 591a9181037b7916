//! A thousand equal requests at once.

use std::collections::BTreeMap;

use axum::Router;
use http::StatusCode;
use saga_core::memory::MemoryStore;
use saga_postgres::PostgresStore;
use saga_sqlite::SqliteStore;

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
