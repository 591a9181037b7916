use axum::Router;
use axum::http::StatusCode;
use serde_json::json;

use crate::status::fixture::{Shop, get, request_of, send};
use crate::status::stores::{Fresh, on_every_store};

/// The JSON is that of `SagaStatus`, with a weak tag of its revision.
async fn a_saga_is_shown_as_its_status<S: Fresh>() {
    let shop = Shop::<S>::new().await;
    shop.ended("ada-1", 3).await;
    for app in [&shop.app, &shop.without_runtime()] {
        let answer = get(app, "/sagas/ada-1", &[]).await;
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        let status = shop.runtime.status("ada-1").await.unwrap().unwrap();
        assert_eq!(answer.json(), serde_json::to_value(&status).unwrap());
        assert_eq!(
            answer.json()["outcome"],
            json!({ "kind": "completed", "forced": null, "result": "3 pieces", "no_result": null })
        );
        assert_eq!(answer.header("etag"), format!("W/\"{}\"", status.revision));
        assert_eq!(answer.header("cache-control"), "private, no-cache");
        let tag = answer.header("etag").to_owned();
        let again = get(app, "/sagas/ada-1", &[("if-none-match", &tag)]).await;
        assert_eq!((again.status, again.text.as_str()), (StatusCode::NOT_MODIFIED, ""));
        assert_eq!(again.header("etag"), tag);
        assert_eq!(get(app, "/sagas/ada-1", &[("if-none-match", "\"0\"")]).await.status, StatusCode::OK);
    }
    shop.runtime.shutdown().await;
}

/// The request for a status succeeds, whatever became of the saga.
async fn a_compensated_saga_is_200_with_the_problem_inside<S: Fresh>() {
    let shop = Shop::<S>::new().await;
    shop.ended("ada-1", 101).await;
    let answer = shop.get("/sagas/ada-1").await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    assert_eq!(answer.json()["status"], "compensated");
    assert_eq!(
        answer.json()["problem"],
        json!({
            "type": "urn:saga:compensated",
            "title": "The saga was compensated",
            "detail": "the saga is compensated, because `pack` failed: only 100 left",
            "step": "pack",
            "cause": "step_failed",
            "error": { "left": 100 },
        })
    );
    shop.gate.open(2);
    shop.start("ada-2", 0).await.outcome().await.unwrap();
    let stuck = shop.get("/sagas/ada-2").await.json();
    assert_eq!(stuck["problem"]["type"], "urn:saga:stuck");
    assert_eq!(stuck["problem"]["detail"], "the saga is stuck at `pack`: the scales are broken");
    shop.runtime.shutdown().await;
}

/// A client cannot tell a saga that it may not see from one that does not exist.
async fn a_foreign_saga_is_answered_as_one_that_does_not_exist<S: Fresh>() {
    let shop = Shop::<S>::new().await;
    shop.ended("ada-1", 3).await;
    for path in ["/sagas/ada-1", "/sagas/ada-1/events"] {
        let foreign = send(&shop.app, request_of("bob", path, &[])).await;
        assert_eq!(foreign.status, StatusCode::NOT_FOUND);
        assert_eq!(foreign.detail(), "there is no saga with the key `ada-1`");
        let unknown = send(&shop.app, request_of("ada", &path.replace("ada-1", "ada-2"), &[])).await;
        assert_eq!(unknown.status, foreign.status);
        assert_eq!(unknown.text, foreign.text.replace("ada-1", "ada-2"));
        let mut nobody = request_of("ada", path, &[]);
        nobody.extensions_mut().clear();
        assert_eq!(send(&shop.app, nobody).await.text, foreign.text);
        assert_eq!(send(&shop.app, request_of("ada", path, &[])).await.status, StatusCode::OK);
        // Waiting tells nothing either.
        let waits = [("prefer", "wait=60"), ("if-none-match", "*")];
        assert_eq!(send(&shop.app, request_of("bob", path, &waits)).await.text, foreign.text);
    }
    shop.runtime.shutdown().await;
}

/// Keys are any visible ASCII, so that a path contains them escaped.
async fn hostile_keys_are_read_as_they_were_escaped<S: Fresh>() {
    let shop = Shop::<S>::new().await;
    for (key, escaped) in [
        ("ada-/../7", "ada-%2F..%2F7"),
        ("ada-7?x=1#y", "ada-7%3Fx=1%23y"),
        ("ada-<script", "ada-%3Cscript"),
        ("ada-%2F", "ada-%252F"),
        ("ada-\"\\'`{}", "ada-%22%5C%27%60%7B%7D"),
        ("ada-events", "ada-events"),
        ("ada-+&;", "ada-+&;"),
    ] {
        shop.ended(key, 1).await;
        let answer = shop.get(&format!("/sagas/{escaped}")).await;
        assert_eq!((answer.status, &answer.json()["key"]), (StatusCode::OK, &json!(key)), "{answer:?}");
        let events = shop.get(&format!("/sagas/{escaped}/events")).await;
        assert_eq!(events.status, StatusCode::OK);
    }
    for (escaped, expected) in [
        ("ada%20-7", "key"),
        ("ada%00", "key"),
        ("ada%0d%0a", "key"),
        ("%E2%80%AE7-ada", "key"),
        ("%FF", "UTF-8"),
        (&*"a".repeat(5_000), "key"),
        ("a%3E", "step name"),
    ] {
        let answer = shop.get(&format!("/sagas/{escaped}")).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{escaped}");
        assert!(answer.detail().contains(expected), "{escaped}: {}", answer.text);
    }
    shop.runtime.shutdown().await;
}

/// The routes see what is captured in front of them, too.
async fn the_routes_may_be_nested_below_a_captured_path<S: Fresh>() {
    let shop = Shop::<S>::new().await;
    shop.ended("ada-1", 3).await;
    let app = Router::new().nest("/countries/{country}/shops/{shop}", shop.app.clone());
    for path in ["/countries/at/shops/ada-2/sagas/ada-1", "/countries/at/shops/ada-2/sagas/ada-1/events"] {
        let answer = get(&app, path, &[]).await;
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        assert!(answer.text.contains("\"key\":\"ada-1\""), "{answer:?}");
    }
    let unknown = get(&app, "/countries/at/shops/ada-1/sagas/ada-2", &[]).await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    assert_eq!(unknown.detail(), "there is no saga with the key `ada-2`");
    shop.runtime.shutdown().await;
}

async fn what_cannot_be_read_of_a_request_is_refused<S: Fresh>() {
    let shop = Shop::<S>::new().await;
    shop.ended("ada-1", 3).await;
    let refused = async |path: &str, headers: &[(&str, &str)], expected: &str| {
        let answer = get(&shop.app, path, headers).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{path}");
        assert!(answer.detail().contains(expected), "{}", answer.text);
    };
    refused("/sagas/ada-1?verbose=1", &[], "`verbose` is no parameter of this route; it has none").await;
    refused("/sagas/ada-1/events?after=1", &[], "`after` is no parameter of this route").await;
    refused("/sagas/ada-1", &[("if-none-match", "12")], "If-None-Match is not a list of entity tags").await;
    refused("/sagas/ada-1/events", &[("last-event-id", "x")], "Last-Event-ID is not the id of an event").await;
    shop.runtime.shutdown().await;
}

on_every_store! {
    a_saga_is_shown_as_its_status,
    a_compensated_saga_is_200_with_the_problem_inside,
    a_foreign_saga_is_answered_as_one_that_does_not_exist,
    hostile_keys_are_read_as_they_were_escaped,
    the_routes_may_be_nested_below_a_captured_path,
    what_cannot_be_read_of_a_request_is_refused,
}
