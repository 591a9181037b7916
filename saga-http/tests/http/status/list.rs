use axum::http::StatusCode;
use serde_json::Value;

use crate::status::fixture::{Answer, Shop, get, request_of, send};
use crate::status::stores::{Fresh, on_every_store};

fn keys(answer: &Answer) -> Vec<String> {
    let sagas = answer.json()["sagas"].clone();
    sagas.as_array().unwrap().iter().map(|saga| saga["key"].as_str().unwrap().to_owned()).collect()
}

async fn a_list_is_read_page_by_page<S: Fresh>() {
    let shop = Shop::<S>::new().await;
    for number in 1..=5 {
        shop.ended(&format!("ada-{number}"), if number == 3 { 101 } else { 1 }).await;
    }
    shop.start("bob-1", 1).await;
    let all = shop.get("/sagas").await;
    assert_eq!(all.status, StatusCode::OK);
    assert_eq!(keys(&all), ["ada-1", "ada-2", "ada-3", "ada-4", "ada-5", "bob-1"]);
    assert_eq!(all.json()["next"], Value::Null);
    assert_eq!(keys(&shop.get("/sagas?status=compensated").await), ["ada-3"]);
    assert_eq!(keys(&shop.get("/sagas?status=running&definition=order").await), ["bob-1"]);
    assert_eq!(keys(&shop.get("/sagas?definition=ord%65r&limit=1").await), ["ada-1"]);
    assert!(keys(&shop.get("/sagas?definition=other").await).is_empty());
    assert!(keys(&shop.get("/sagas?definition=%27%20OR%201=1--").await).is_empty());

    let (mut path, mut seen) = ("/sagas?status=completed&limit=3".to_owned(), Vec::new());
    let first = path.clone();
    loop {
        let page = shop.get(&path).await;
        seen.extend(keys(&page));
        let Some(next) = page.json()["next"].as_str().map(str::to_owned) else { break };
        path = format!("{first}&after={next}");
    }
    assert_eq!(seen, ["ada-1", "ada-2", "ada-4", "ada-5"]);
    assert_eq!(get(&shop.without_runtime(), "/sagas", &[]).await.text, all.text);
    shop.gate.open(2);
    shop.runtime.shutdown().await;
}

/// Pages go on behind sagas that the client may not see.
async fn a_list_leaves_out_what_the_client_may_not_see<S: Fresh>() {
    let shop = Shop::<S>::new().await;
    for key in ["bob-1", "bob-2", "ada-1", "bob-3", "ada-2"] {
        shop.ended(key, 1).await;
    }
    let (mut path, mut pages) = ("/sagas?limit=2".to_owned(), Vec::new());
    loop {
        let page = send(&shop.app, request_of("ada", &path, &[])).await;
        pages.push(keys(&page));
        assert!(!page.text.contains("bob"), "{}", page.text);
        let Some(next) = page.json()["next"].as_str().map(str::to_owned) else { break };
        path = format!("/sagas?limit=2&after={next}");
    }
    assert_eq!(pages.concat(), ["ada-1", "ada-2"]);
    assert!(pages[0].is_empty());
    shop.runtime.shutdown().await;
}

async fn a_mistake_in_the_query_is_named<S: Fresh>() {
    let shop = Shop::<S>::new().await;
    for (query, expected) in [
        (
            "status=done",
            "`status` is `done`; it is one of running, compensating, completed, compensated, stuck, paused",
        ),
        ("status=Running", "`status` is `Running`"),
        ("state=running", "`state` is no parameter of this route; it has `status`, `definition`, `after`, `limit`"),
        ("limit=1000", "`limit` is `1000`; it is a number from 1 to 500"),
        ("after=abc", "`after` is `abc`; it is the `next` of the page before"),
        ("tenant=acme", "`tenant` is no parameter of this route"),
        ("limit=1&limit=2", "`limit` is given more than once"),
        ("status", "`status` is ``"),
    ] {
        let answer = shop.get(&format!("/sagas?{query}")).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{query}");
        assert!(answer.detail().contains(expected), "{}", answer.text);
    }
    shop.runtime.shutdown().await;
}

on_every_store! {
    a_list_is_read_page_by_page,
    a_list_leaves_out_what_the_client_may_not_see,
    a_mistake_in_the_query_is_named,
}
