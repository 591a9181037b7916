//! The rules of a key: what is a replay, what is another request, and whose key it is.

use std::time::Duration;

use http::{Method, StatusCode};
use saga_http::Idempotency;

use crate::support::{Application, Ledger, Order, on_each_store, request, send};

on_each_store!(
    a_retry_gets_the_same_response,
    another_request_under_the_key_is_refused,
    a_key_is_of_one_principal,
    a_missing_key_is_refused_where_it_is_required,
    other_methods_have_no_keys,
    what_the_extractors_reject_takes_no_key,
    json_is_compared_by_content_if_that_is_wanted,
    a_key_is_new_after_its_time,
);

pub(crate) async fn a_retry_gets_the_same_response<S: Ledger>(shop: Application<S>) {
    let first = shop.pay("\"k-1\"", &Order { status: 201, ..Order::of("rent") }).await;
    assert_eq!((first.status, &first.body[..]), (StatusCode::CREATED, &b"1 of rent"[..]));
    assert!(!first.is_replayed());
    assert_eq!(first.headers["set-cookie"], "session=1");
    // With and without quotes it is the same key.
    for key in ["\"k-1\"", "k-1"] {
        let again = shop.pay(key, &Order { status: 201, ..Order::of("rent") }).await;
        assert!(again.is_replayed());
        let mut expected = first.clone();
        expected.headers.remove("set-cookie");
        assert_eq!(again.without_mark(), expected);
    }
    assert_eq!((shop.store.payments("rent").await, shop.calls()), (1, 1));
    let other = shop.pay("k-2", &Order { status: 201, ..Order::of("rent") }).await;
    assert_eq!(other.body, b"2 of rent");
}

pub(crate) async fn another_request_under_the_key_is_refused<S: Ledger>(shop: Application<S>) {
    shop.pay("k-1", &Order::of("rent")).await;
    let rent = Order::of("rent").text();
    for (request, body) in [
        (request("/payments", "k-1"), Order::of("food").text()),
        (request("/refunds", "k-1"), rent.clone()),
        (request("/payments?again=1", "k-1"), rent.clone()),
        (request("/payments", "k-1").method(Method::PATCH), rent.clone()),
    ] {
        let refused = send(&shop.app, request, body).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(refused.headers["content-type"], "application/problem+json");
        assert_eq!(refused.json()["status"], 422);
        assert!(!refused.is_replayed());
    }
    assert_eq!((shop.store.payments("rent").await, shop.store.payments("food").await), (1, 0));
}

pub(crate) async fn a_key_is_of_one_principal<S: Ledger>(shop: Application<S>) {
    shop.pay("k-1", &Order::of("rent")).await;
    let of = |user: Option<&str>| {
        let mut request = request("/payments", "k-1");
        request.headers_mut().unwrap().remove("x-user");
        if let Some(user) = user {
            request = request.header("x-user", user);
        }
        send(&shop.app, request, Order::of("rent").text())
    };
    let grace = of(Some("grace")).await;
    assert_eq!((grace.status, grace.is_replayed(), &grace.body[..]), (StatusCode::OK, false, &b"2 of rent"[..]));
    assert_eq!(of(None).await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(shop.store.payments("rent").await, 2);
}

pub(crate) async fn a_missing_key_is_refused_where_it_is_required<S: Ledger>(shop: Application<S>) {
    let without = || {
        let mut request = request("/payments", "k-1");
        request.headers_mut().unwrap().remove("idempotency-key");
        request
    };
    let twice = request("/payments", "k-1").header("idempotency-key", "k-1");
    let refused = send(&shop.app, twice, Order::of("rent").text()).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    let refused = send(&shop.app, without(), Order::of("rent").text()).await;
    assert_eq!((refused.status, &refused.json()["status"]), (StatusCode::BAD_REQUEST, &400.into()));
    assert_eq!(shop.store.payments("rent").await, 0);

    let optional = shop.with(|idempotency| idempotency);
    for number in ["1", "2"] {
        let ran = send(&optional, without(), Order::of("rent").text()).await;
        assert_eq!(String::from_utf8(ran.body).unwrap(), format!("{number} of rent"));
    }
    let undone = send(&optional, without(), Order { status: 422, ..Order::of("rent") }.text()).await;
    assert_eq!(undone.status, StatusCode::UNPROCESSABLE_ENTITY);
    let streamed = send(&optional, without(), Order { streams: true, ..Order::of("rent") }.text()).await;
    assert_eq!(streamed.body, b"3 of rent");
    assert_eq!(shop.store.payments("rent").await, 3);

    let strict = shop.with(Idempotency::strict);
    let refused = send(&strict, request("/payments", "k-1"), Order::of("rent").text()).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    let quoted = send(&strict, request("/payments", "\"k-1\""), Order::of("rent").text()).await;
    assert_eq!(quoted.status, StatusCode::OK);
}

pub(crate) async fn other_methods_have_no_keys<S: Ledger>(shop: Application<S>) {
    for number in 1..=2 {
        let put = request("/payments", "k-1").method(Method::PUT);
        let ran = send(&shop.app, put, Order::of("rent").text()).await;
        assert_eq!(String::from_utf8(ran.body).unwrap(), format!("{number} of rent"));
        let get = send(&shop.app, request("/payments/count", "k-1").method(Method::GET), "").await;
        assert_eq!(String::from_utf8(get.body).unwrap(), number.to_string());
    }
}

pub(crate) async fn what_the_extractors_reject_takes_no_key<S: Ledger>(shop: Application<S>) {
    let rejected = send(&shop.app, request("/payments", "k-1"), "{").await;
    assert_eq!(rejected.status, StatusCode::BAD_REQUEST);
    assert_eq!(shop.pay("k-1", &Order::of("rent")).await.body, b"1 of rent");
}

pub(crate) async fn json_is_compared_by_content_if_that_is_wanted<S: Ledger>(shop: Application<S>) {
    let canonical = shop.with(Idempotency::canonical_json);
    let first = send(&canonical, request("/payments", "k-1"), r#"{"name":"rent","bytes":1}"#).await;
    let again = send(&canonical, request("/payments", "k-1"), r#"{ "bytes": 1, "name": "rent" }"#).await;
    assert_eq!((again.is_replayed(), &again.body), (true, &first.body));
    let raw = send(&shop.app, request("/payments", "k-2"), r#"{"name":"rent"}"#).await;
    assert_eq!(raw.status, StatusCode::OK);
    let spaced = send(&shop.app, request("/payments", "k-2"), r#"{"name": "rent"}"#).await;
    assert_eq!(spaced.status, StatusCode::UNPROCESSABLE_ENTITY);
}

pub(crate) async fn a_key_is_new_after_its_time<S: Ledger>(shop: Application<S>) {
    let short = shop.with(|idempotency| idempotency.ttl(Duration::ZERO).unwrap());
    for number in 1..=2 {
        let ran = send(&short, request("/payments", "k-1"), Order::of("rent").text()).await;
        assert_eq!(String::from_utf8(ran.body).unwrap(), format!("{number} of rent"));
    }
}
