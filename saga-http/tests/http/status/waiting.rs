use std::time::Duration;

use axum::http::StatusCode;
use saga_core::memory::MemoryStore;
use saga_core::{Runtime, SagaHandle};
use tokio::time::Instant;

use crate::status::fixture::{Answer, Shop, get, routes};
use crate::status::stores::{Fresh, on_every_store};

const MINUTE: (&str, &str) = ("prefer", "wait=60");

/// Opens the gate once the client waits, which cannot be seen from outside; if the gate is faster, the answer is the same.
async fn opened_meanwhile<S: Fresh>(shop: &Shop<S>, steps: usize, client: impl Future<Output = Answer>) -> Answer {
    let opened = async {
        tokio::task::yield_now().await;
        shop.gate.open(steps);
    };
    tokio::join!(client, opened).0
}

fn is_ended(answer: &Answer) -> bool {
    answer.json()["status"] == "completed"
}

/// With a runtime, without one, and with a runtime in another process.
async fn a_long_poll_ends_when_the_saga_ends<S: Fresh>() {
    let shop = Shop::<S>::new().await;
    let another = Runtime::builder(shop.store.another(&shop.place).await);
    let another =
        another.settings(|settings| settings.poll_interval = Duration::from_millis(20)).start().await.unwrap();
    let elsewhere = routes(another.admin()).into_router();
    for (key, app) in [("ada-1", &shop.app), ("ada-2", &shop.without_runtime()), ("ada-3", &elsewhere)] {
        shop.start(key, 3).await;
        let path = format!("/sagas/{key}");
        let answer = opened_meanwhile(&shop, 2, get(app, &path, &[MINUTE])).await;
        assert_eq!(answer.status, StatusCode::OK);
        assert!(is_ended(&answer), "{}", answer.text);
        assert_eq!(answer.header("preference-applied"), "wait=60");
    }
    another.shutdown().await;
    shop.runtime.shutdown().await;
}

/// A client that goes from revision to revision sees the end, and each answer differs from the last.
async fn each_change_answers_a_client_that_knows_the_revision<S: Fresh>() {
    let shop = Shop::<S>::new().await;
    for (key, app) in [("ada-1", &shop.app), ("ada-2", &shop.without_runtime())] {
        shop.start(key, 3).await;
        let path = format!("/sagas/{key}");
        let mut tag = get(app, &path, &[]).await.header("etag").to_owned();
        let mut answers = 0;
        loop {
            let answer = opened_meanwhile(&shop, 1, get(app, &path, &[MINUTE, ("if-none-match", &tag)])).await;
            assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
            assert_ne!(answer.header("etag"), tag);
            answer.header("etag").clone_into(&mut tag);
            answers += 1;
            if is_ended(&answer) {
                break;
            }
        }
        assert!(answers >= 1, "{answers}");
        shop.gate.shut();
        // Nothing more will happen, so nobody waits.
        let last = get(app, &path, &[MINUTE, ("if-none-match", &tag)]).await;
        assert_eq!(last.status, StatusCode::NOT_MODIFIED);
        assert!(is_ended(&get(app, &path, &[MINUTE]).await));
    }
    shop.runtime.shutdown().await;
}

/// A stuck saga answers a client that waits for the outcome, as it answers `SagaHandle::outcome`.
async fn a_stuck_saga_answers_who_waits_for_the_outcome<S: Fresh>() {
    let shop = Shop::<S>::new().await;
    let handle: SagaHandle<S, String> = shop.start("ada-1", 0).await;
    let answer = opened_meanwhile(&shop, 2, get(&shop.app, "/sagas/ada-1", &[MINUTE])).await;
    assert_eq!(answer.json()["status"], "stuck");
    assert_eq!(get(&shop.without_runtime(), "/sagas/ada-1", &[MINUTE]).await.json()["status"], "stuck");
    // It may still change.
    let tag = answer.header("etag").to_owned();
    let control = shop.runtime.admin().control(handle.key());
    let ended = async {
        tokio::task::yield_now().await;
        control.force_completed("it was packed by hand").await.unwrap();
    };
    let waits = [MINUTE, ("if-none-match", tag.as_str())];
    let (answer, ()) = tokio::join!(get(&shop.app, "/sagas/ada-1", &waits), ended);
    assert_eq!(answer.status, StatusCode::OK);
    assert_ne!(answer.header("etag"), tag);
    shop.runtime.shutdown().await;
}

on_every_store! {
    a_long_poll_ends_when_the_saga_ends,
    each_change_answers_a_client_that_knows_the_revision,
    a_stuck_saga_answers_who_waits_for_the_outcome,
}

/// The wait is that of the client, and a minute at most.
#[tokio::test(start_paused = true)]
async fn a_wait_ends_in_time() {
    let shop = Shop::<MemoryStore>::new().await;
    shop.start("ada-1", 3).await;
    for app in [&shop.app, &shop.without_runtime()] {
        let tag = get(app, "/sagas/ada-1", &[]).await.header("etag").to_owned();
        for (preference, seconds) in [("wait=5", 5), ("wait=3600", 60), ("wait=0", 0), ("wait=soon", 0)] {
            let began = Instant::now();
            let known = get(app, "/sagas/ada-1", &[("prefer", preference), ("if-none-match", &tag)]).await;
            assert_eq!(known.status, StatusCode::NOT_MODIFIED);
            assert_eq!(began.elapsed().as_secs(), seconds, "{preference}");
            let unknown = get(app, "/sagas/ada-1", &[("prefer", preference)]).await;
            assert_eq!((unknown.status, &unknown.json()["status"]), (StatusCode::OK, &"running".into()));
            assert_eq!(began.elapsed().as_secs(), 2 * seconds, "{preference}");
        }
    }
    shop.gate.open(2);
    shop.runtime.shutdown().await;
}

/// A server that stops answers all who wait.
#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_server_that_stops() {
    let shop = Shop::<MemoryStore>::new().await;
    shop.start("ada-1", 3).await;
    let (signal, stopped) = tokio::sync::oneshot::channel::<()>();
    let until = async { stopped.await.unwrap_or_default() };
    let app = routes(shop.runtime.admin()).until(until).into_router();
    let began = Instant::now();
    let stops = async {
        tokio::time::advance(Duration::from_secs(1)).await;
        signal.send(()).unwrap();
    };
    let waits = get(&app, "/sagas/ada-1", &[MINUTE]);
    let (polled, followed, ()) = tokio::join!(waits, get(&app, "/sagas/ada-1/events", &[]), stops);
    assert_eq!((polled.status, followed.status), (StatusCode::OK, StatusCode::OK));
    assert_eq!(get(&app, "/sagas/ada-1", &[MINUTE]).await.status, StatusCode::OK);
    assert_eq!(began.elapsed().as_secs(), 1);
    shop.gate.open(2);
    shop.runtime.shutdown().await;
}
