//! Requests that start sagas.

use http::StatusCode;
use saga_http::Idempotency;
use serde_json::Value;

use crate::support::application::{routes, user};
use crate::support::{Application, Ledger, Order, on_each_store, request, send};

on_each_store!(
    a_started_saga_is_accepted_once,
    a_saga_exists_if_its_request_is_kept,
    who_prefers_to_wait_gets_the_outcome,
    a_key_of_another_saga_is_refused,
    without_a_runtime_no_saga_is_started,
);

fn order(name: &str, saga: &str) -> Order {
    Order { saga: Some(saga.to_owned()), ..Order::of(name) }
}

/// Guarantee 7: the saga is found by its key.
pub(crate) async fn a_started_saga_is_accepted_once<S: Ledger>(shop: Application<S>) {
    let first = shop.pay("k-1", &order("Ada", "A/1001")).await;
    assert_eq!(first.status, StatusCode::ACCEPTED);
    assert_eq!(
        (&first.headers["location"], &first.headers["retry-after"]),
        (&"/sagas/A%2F1001".parse().unwrap(), &"1".parse().unwrap())
    );
    assert_eq!(
        (&first.json()["key"], &first.json()["location"]),
        (&Value::from("A/1001"), &Value::from("/sagas/A%2F1001"))
    );
    let again = shop.pay("k-1", &order("Ada", "A/1001")).await;
    assert!(again.is_replayed());
    assert_eq!(again.as_first(), first);
    shop.runtime.attach("A/1001").await.unwrap().outcome().await.unwrap();
    assert_eq!(shop.store.payments("Ada").await, 1);
}

pub(crate) async fn a_saga_exists_if_its_request_is_kept<S: Ledger>(shop: Application<S>) {
    for status in [422, 404, 500] {
        let key = format!("B-{status}");
        let refused = shop.pay(&key, &Order { status, ..order("Ada", &key) }).await;
        assert_eq!(refused.status.as_u16(), status);
        assert!(shop.runtime.status(&key).await.unwrap().is_none(), "the saga of a request that was not kept exists");
    }
    shop.pay("k-201", &Order { status: 201, ..order("Ada", "B-201") }).await;
    assert!(shop.runtime.status("B-201").await.unwrap().is_some());
}

pub(crate) async fn who_prefers_to_wait_gets_the_outcome<S: Ledger>(shop: Application<S>) {
    let waiting = |key: &str| request("/payments", key).header("prefer", "wait=60");
    let done = send(&shop.app, waiting("k-1"), order("Ada", "C-1").text()).await;
    assert_eq!((done.status, &done.json()["status"]), (StatusCode::OK, &Value::from("completed")), "{done:?}");
    assert_eq!(done.headers["content-location"], "/sagas/C-1");
    assert_eq!(done.headers["preference-applied"], "wait=60");
    // What is kept is the 202.
    let kept = shop.pay("k-1", &order("Ada", "C-1")).await;
    assert_eq!((kept.status, kept.is_replayed()), (StatusCode::ACCEPTED, true));
    let again = send(&shop.app, waiting("k-1"), order("Ada", "C-1").text()).await;
    assert_eq!((again.status, again.is_replayed(), again.body), (StatusCode::OK, true, done.body));
    // A saga that failed is a request that succeeded, with the problem inside.
    let failed = send(&shop.app, waiting("k-2"), order("nobody", "C-2").text()).await;
    assert_eq!((failed.status, &failed.json()["status"]), (StatusCode::OK, &Value::from("compensated")), "{failed:?}");
    assert_eq!(failed.json()["problem"]["type"], "urn:saga:compensated");
    assert_eq!(shop.store.payments("nobody").await, 1, "what the handler wrote was committed with the start");
}

pub(crate) async fn a_key_of_another_saga_is_refused<S: Ledger>(shop: Application<S>) {
    shop.pay("k-1", &order("Ada", "D-1")).await;
    let same = shop.pay("k-2", &order("Ada", "D-1")).await;
    assert_eq!(same.status, StatusCode::ACCEPTED, "the same saga, under another key of a request");
    let other = shop.pay("k-3", &order("Grace", "D-1")).await;
    assert_eq!((other.status, shop.store.payments("Grace").await), (StatusCode::UNPROCESSABLE_ENTITY, 0));
    assert!(shop.pay("k-3", &order("Grace", "D-1")).await.is_replayed());
}

pub(crate) async fn without_a_runtime_no_saga_is_started<S: Ledger>(shop: Application<S>) {
    let alone = Idempotency::of_store(shop.store.clone()).principal(user);
    let app = routes(&alone, &shop.shop);
    let failed = send(&app, request("/payments", "k-1"), order("Ada", "E-1").text()).await;
    assert_eq!((failed.status, shop.store.payments("Ada").await), (StatusCode::INTERNAL_SERVER_ERROR, 0));
}
