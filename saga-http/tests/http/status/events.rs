use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::StatusCode;
use http_body_util::BodyExt as _;
use saga_core::memory::MemoryStore;
use serde_json::Value;
use tokio::time::Instant;
use tower::ServiceExt as _;

use crate::status::fixture::{Shop, get, request};
use crate::status::stores::{Fresh, on_every_store};

/// What a browser would see of a stream.
struct EventSource {
    body: Body,
    read: String,
}

#[derive(Debug)]
struct Event {
    id: String,
    status: Value,
}

impl EventSource {
    async fn open(app: &Router, path: &str, last_event_id: Option<&str>) -> Self {
        let headers: Vec<_> = last_event_id.into_iter().map(|id| ("last-event-id", id)).collect();
        let response = app.clone().oneshot(request(path, &headers)).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { body: response.into_body(), read: String::new() }
    }

    /// The next event; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(end) = self.read.find("\n\n") {
                let event: String = self.read.drain(..end + 2).collect();
                let event = parse(&event);
                if event.is_some() {
                    return event;
                }
                continue;
            }
            let frame = self.body.frame().await?.unwrap();
            self.read.push_str(std::str::from_utf8(&frame.into_data().unwrap()).unwrap());
        }
    }
}

/// `None` for a comment, which keeps the connection alive.
fn parse(event: &str) -> Option<Event> {
    let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    let data = field("data")?;
    assert_eq!(field("event"), Some("status"));
    Some(Event { id: field("id").unwrap().to_owned(), status: serde_json::from_str(data).unwrap() })
}

/// The status now, then each change, then the end; asked again, a browser stops.
async fn a_stream_ends_with_the_saga<S: Fresh>() {
    let shop = Shop::<S>::new().await;
    for (key, app) in [("ada-1", &shop.app), ("ada-2", &shop.without_runtime())] {
        shop.start(key, 101).await;
        let path = format!("/sagas/{key}/events");
        let mut events = EventSource::open(app, &path, None).await;
        let mut seen = vec![events.next().await.unwrap()];
        assert_eq!(seen[0].status["status"], "running");
        shop.gate.open(3);
        while let Some(event) = events.next().await {
            seen.push(event);
        }
        let last = seen.last().unwrap();
        assert_eq!(last.status["status"], "compensated");
        assert_eq!(last.status["problem"]["error"]["left"], 100);
        let revisions: Vec<u64> = seen.iter().map(|event| event.id.parse().unwrap()).collect();
        assert!(revisions.is_sorted_by(|a, b| a < b), "{revisions:?}");
        assert!(seen.iter().all(|event| event.status["revision"].as_u64() == event.id.parse().ok()));

        let again = get(app, &path, &[("last-event-id", &last.id)]).await;
        assert_eq!((again.status, again.text.as_str()), (StatusCode::NO_CONTENT, ""));
        let mut from_the_start = EventSource::open(app, &path, None).await;
        assert_eq!(from_the_start.next().await.unwrap().id, last.id);
        assert!(from_the_start.next().await.is_none());
    }
    shop.runtime.shutdown().await;
}

/// What a client has seen is not sent again, and what it has missed is.
async fn a_stream_resumes_after_the_last_event<S: Fresh>() {
    let shop = Shop::<S>::new().await;
    shop.start("ada-1", 3).await;
    let mut events = EventSource::open(&shop.app, "/sagas/ada-1/events", None).await;
    let first = events.next().await.unwrap();
    drop(events);

    let mut resumed = EventSource::open(&shop.app, "/sagas/ada-1/events", Some(&first.id)).await;
    shop.gate.open(2);
    let second = resumed.next().await.unwrap();
    assert_ne!(second.id, first.id);
    drop(resumed);

    // It ends while the client is away.
    shop.runtime.attach("ada-1").await.unwrap().outcome().await.unwrap();
    let mut events = EventSource::open(&shop.app, "/sagas/ada-1/events", Some(&first.id)).await;
    assert_eq!(events.next().await.unwrap().status["status"], "completed");
    assert!(events.next().await.is_none());
    shop.runtime.shutdown().await;
}

on_every_store! {
    a_stream_ends_with_the_saga,
    a_stream_resumes_after_the_last_event,
}

/// After a quarter of an hour the client has to ask anew, and shows then what it has seen.
#[tokio::test(start_paused = true)]
async fn a_stream_is_kept_alive_and_ends_some_day() {
    let shop = Shop::<MemoryStore>::new().await;
    shop.start("ada-1", 3).await;
    let began = Instant::now();
    let answer = get(&shop.app, "/sagas/ada-1/events", &[]).await;
    assert_eq!(began.elapsed(), Duration::from_mins(15));
    assert_eq!(answer.text.matches("data: ").count(), 1);
    assert!(answer.text.matches("\n:\n").count() + answer.text.matches(":\n\n").count() >= 50, "{}", answer.text);
    shop.gate.open(2);
    shop.runtime.shutdown().await;
}
