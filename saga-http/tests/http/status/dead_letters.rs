use axum::http::StatusCode;
use axum::http::request::Parts;
use saga_core::Tenant;
use saga_core::store::{DeadLetterId, DeadLetterReason, NewDeadLetter};
use serde_json::json;

use crate::status::fixture::{Shop, User, get, request_of, routes, send};
use crate::status::stores::{Fresh, on_every_store};

pub(crate) fn letter(number: u8, reason: DeadLetterReason) -> NewDeadLetter {
    NewDeadLetter {
        id: DeadLetterId(i64::from(number) + 1_000_000),
        fingerprint: [number; 32],
        tenant: Tenant::default(),
        reason,
        detail: format!("the message {number} has no header `kind`"),
        source: "hotels".to_owned(),
        headers: vec![("content-type".to_owned(), "text/<b>".to_owned())],
        payload: b"caf\xe9 {\"card\": 4711}".to_vec(),
        message: None,
        attempts: 1,
    }
}

/// Letters contain what was sent, so that the application must ask for the routes, and decides about each letter.
async fn letters_are_shown_to_operators_only<S: Fresh>() {
    let shop = Shop::<S>::new().await;
    let letters: Vec<_> = (1..=3).map(|number| letter(number, DeadLetterReason::Unreadable)).collect();
    shop.store.add_dead_letters(letters).await.unwrap();
    shop.runtime.admin().dead_letters().discard(DeadLetterId(1_000_003), "known").await.unwrap();
    assert_eq!(shop.get("/dead-letters").await.status, StatusCode::NOT_FOUND);

    let is_operator =
        |request: &Parts, _: &_| request.extensions.get::<User>().is_some_and(|user| user.0 == "operator");
    let app = routes(shop.runtime.admin()).dead_letters(is_operator).into_router();
    let ids = async |path: &str| {
        let answer = get(&app, path, &[]).await;
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        assert!(!answer.text.contains("4711"), "a list shows no contents");
        let letters = answer.json()["dead_letters"].clone();
        let ids: Vec<i64> = letters.as_array().unwrap().iter().map(|letter| letter["id"].as_i64().unwrap()).collect();
        (ids, answer.json()["next"].as_str().map(str::to_owned))
    };
    assert_eq!(ids("/dead-letters").await, (vec![1_000_001, 1_000_002], None));
    assert_eq!(ids("/dead-letters?state=discarded").await.0, [1_000_003]);
    assert_eq!(ids("/dead-letters?state=all&limit=2").await, (vec![1_000_001, 1_000_002], Some("1000002".to_owned())));
    assert_eq!(ids("/dead-letters?state=all&limit=2&after=1000002").await, (vec![1_000_003], None));
    let reason = DeadLetterReason::Unreadable.as_str();
    assert_eq!(ids(&format!("/dead-letters?reason={reason}")).await.0.len(), 2);

    let one = get(&app, "/dead-letters/1000001", &[]).await;
    assert_eq!(one.status, StatusCode::OK);
    assert_eq!(one.json()["payload"], "caf\u{fffd} {\"card\": 4711}");
    assert_eq!(one.json()["headers"], json!({ "content-type": "text/<b>" }));
    assert_eq!(one.header("content-type"), "application/json");

    let unknown = get(&app, "/dead-letters/7", &[]).await;
    assert_eq!((unknown.status, unknown.detail()), (StatusCode::NOT_FOUND, "there is no dead letter 7".to_owned()));
    let foreign = send(&app, request_of("ada", "/dead-letters/1000001", &[])).await;
    assert_eq!(
        (foreign.status, foreign.detail()),
        (StatusCode::NOT_FOUND, "there is no dead letter 1000001".to_owned())
    );
    let list = send(&app, request_of("ada", "/dead-letters", &[])).await;
    assert_eq!(list.json(), json!({ "dead_letters": [], "next": null }));
    for path in
        ["/dead-letters/x", "/dead-letters?state=lost", "/dead-letters?reason=none", "/dead-letters?status=open"]
    {
        assert_eq!(get(&app, path, &[]).await.status, StatusCode::BAD_REQUEST, "{path}");
    }
    shop.runtime.shutdown().await;
}

on_every_store! {
    letters_are_shown_to_operators_only,
}
