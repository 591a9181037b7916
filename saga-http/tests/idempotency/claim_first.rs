//! Handlers without the store's transaction.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;
use std::time::Duration;

use http::StatusCode;
use saga_core::env::BoxFuture;
use saga_core::memory::{CommitFate, CommitHook, CommitPoint, MemoryStore};
use saga_core::store::{StoreError, StoreErrorKind};
use saga_http::Idempotency;

use crate::support::application::{routes, user};
use crate::support::{Answer, Application, Ledger, Order, on_each_store, request, send};

on_each_store!(
    a_mail_is_sent_once,
    what_may_change_frees_the_key,
    of_a_long_response_status_and_headers_are_kept,
    a_mail_in_flight_is_refused_or_waited_for,
    a_client_that_leaves_loses_nothing,
    a_client_that_leaves_while_its_key_is_claimed_loses_nothing,
    a_body_that_breaks_off_is_kept_as_far_as_it_came,
    too_many_clients_that_wait_are_refused,
    after_its_lease_a_mail_is_sent_again,
);

async fn mail<S: Ledger>(shop: &Application<S>, key: &str, order: &Order) -> Answer {
    send(&shop.app, request("/mails", key), order.text()).await
}

fn staying() -> Order {
    Order { stays: true, ..Order::of("hello") }
}

async fn enter<S: Ledger>(shop: &Application<S>) -> tokio::task::JoinHandle<Answer> {
    let app = shop.app.clone();
    let first = tokio::spawn(async move { send(&app, request("/mails", "k-1"), staying().text()).await });
    shop.shop.gate.entered.notified().await;
    first
}

pub(crate) async fn a_mail_is_sent_once<S: Ledger>(shop: Application<S>) {
    for (key, status) in [("k-1", 200), ("k-2", 201), ("k-3", 422)] {
        let order = Order { status, ..Order::of("hello") };
        let first = mail(&shop, key, &order).await;
        assert_eq!((first.status.as_u16(), &first.body[..]), (status, format!("{key} of hello").as_bytes()));
        let again = mail(&shop, key, &order).await;
        assert!(again.is_replayed() && !again.headers.contains_key("set-cookie"));
        assert_eq!(
            (again.status, &again.body, &again.headers["etag"]),
            (first.status, &first.body, &first.headers["etag"])
        );
        assert_eq!(mail(&shop, key, &Order::of("other")).await.status, StatusCode::UNPROCESSABLE_ENTITY);
        // The key belongs to its route.
        assert_eq!(shop.pay(key, &order).await.status, StatusCode::UNPROCESSABLE_ENTITY);
    }
    assert_eq!(shop.calls(), 3);
    let mut without = request("/mails", "k-4");
    without.headers_mut().unwrap().remove("idempotency-key");
    assert_eq!(send(&shop.app, without, "{}").await.status, StatusCode::BAD_REQUEST);
}

pub(crate) async fn what_may_change_frees_the_key<S: Ledger>(shop: Application<S>) {
    for status in [401, 404, 409, 429, 500, 503] {
        let key = format!("k-{status}");
        assert_eq!(mail(&shop, &key, &Order { status, ..Order::of("hello") }).await.status.as_u16(), status);
        assert_eq!(mail(&shop, &key, &Order::of("other")).await.status, StatusCode::OK);
    }
    let failed = mail(&shop, "k-1", &Order { panics: true, ..Order::of("hello") }).await;
    assert_eq!(failed.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(mail(&shop, "k-1", &Order::of("hello")).await.status, StatusCode::OK);
}

pub(crate) async fn of_a_long_response_status_and_headers_are_kept<S: Ledger>(shop: Application<S>) {
    let long = Order { bytes: 300_000, status: 201, ..Order::of("hello") };
    let streamed = Order { streams: true, status: 201, ..Order::of("hello") };
    for (key, order) in [("k-1", long), ("k-2", streamed)] {
        let first = mail(&shop, key, &order).await;
        assert_eq!((first.status, first.body.len()), (StatusCode::CREATED, "k-1 of hello".len() + order.bytes));
        let again = mail(&shop, key, &order).await;
        assert_eq!((again.status, again.is_replayed(), &again.body[..]), (StatusCode::CREATED, true, &b""[..]));
        assert_eq!(again.headers["etag"], first.headers["etag"]);
    }
    assert_eq!(shop.calls(), 2);
}

pub(crate) async fn a_mail_in_flight_is_refused_or_waited_for<S: Ledger>(shop: Application<S>) {
    let first = enter(&shop).await;
    let refused = mail(&shop, "k-1", &staying()).await;
    assert_eq!((refused.status, &refused.headers["retry-after"]), (StatusCode::CONFLICT, &"1".parse().unwrap()));
    let app = shop.app.clone();
    let waiting = request("/mails", "k-1").header("prefer", "wait=60");
    let second = tokio::spawn(async move { send(&app, waiting, staying().text()).await });
    shop.shop.gate.opens.notify_one();
    let (first, second) = (first.await.unwrap(), second.await.unwrap());
    assert_eq!((first.status, second.is_replayed(), second.body, shop.calls()), (StatusCode::OK, true, first.body, 1));
}

pub(crate) async fn a_client_that_leaves_loses_nothing<S: Ledger>(shop: Application<S>) {
    let first = enter(&shop).await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    shop.shop.gate.opens.notify_one();
    let waiting = request("/mails", "k-1").header("prefer", "wait=60");
    let second = send(&shop.app, waiting, staying().text()).await;
    assert_eq!((second.status, second.is_replayed(), shop.calls()), (StatusCode::OK, true, 1));
}

/// It leaves at each point at which it can: the handler was not called, or its response is kept.
pub(crate) async fn a_client_that_leaves_while_its_key_is_claimed_loses_nothing<S: Ledger>(shop: Application<S>) {
    let app = shop.with(|idempotency| idempotency.lease_ttl(Duration::from_hours(1)));
    for polls in 1.. {
        let key = format!("k-{polls}");
        let mut sent = Box::pin(send(&app, request("/mails", &key), Order::of("hello").text()));
        let mut left = polls;
        let answer = poll_fn(|context| {
            if left == 0 {
                return Poll::Ready(None);
            }
            left -= 1;
            sent.as_mut().poll(context).map(Some)
        });
        let is_answered = pin!(answer).await.is_some();
        drop(sent);
        let waiting = request("/mails", &key).header("prefer", "wait=60");
        let again = send(&app, waiting, Order::of("hello").text()).await;
        assert_eq!((again.status, shop.calls()), (StatusCode::OK, polls), "it left after {polls} polls");
        if is_answered {
            return;
        }
    }
}

pub(crate) async fn a_body_that_breaks_off_is_kept_as_far_as_it_came<S: Ledger>(shop: Application<S>) {
    let order = Order { breaks_off: true, ..Order::of("hello") };
    let first = mail(&shop, "k-1", &order).await;
    let again = mail(&shop, "k-1", &order).await;
    assert_eq!((first.status, &first.body[..], again.is_replayed()), (StatusCode::OK, &b"k-1 of hello"[..], true));
    let length =
        |answer: &Answer| answer.headers.get("content-length").map(|length| length.to_str().unwrap().to_owned());
    assert_eq!(again.body, first.body);
    assert!([&first, &again].map(length).into_iter().flatten().all(|length| length == "12"));
}

pub(crate) async fn too_many_clients_that_wait_are_refused<S: Ledger>(shop: Application<S>) {
    let app = shop.with(|idempotency| idempotency.waiting_max(1));
    let first = enter(&shop).await;
    let waiting = |app: axum::Router| async move {
        let waiting = request("/mails", "k-1").header("prefer", "wait=60");
        send(&app, waiting, staying().text()).await
    };
    let mut one = tokio::spawn(waiting(app.clone()));
    let mut other = tokio::spawn(waiting(app));
    let (refused, waits) = tokio::select! {
        refused = &mut one => (refused.unwrap(), other),
        refused = &mut other => (refused.unwrap(), one),
    };
    assert_eq!(refused.status, StatusCode::CONFLICT);
    shop.shop.gate.opens.notify_one();
    assert_eq!((first.await.unwrap().status, waits.await.unwrap().is_replayed()), (StatusCode::OK, true));
}

/// At least once: a handler that outlasts its lease is called again, under a higher epoch, and its response counts no more.
pub(crate) async fn after_its_lease_a_mail_is_sent_again<S: Ledger>(shop: Application<S>) {
    let app = shop.with(|idempotency| idempotency.lease_ttl(Duration::ZERO));
    let slow = app.clone();
    let first = tokio::spawn(async move { send(&slow, request("/mails", "k-1"), staying().text()).await });
    shop.shop.gate.entered.notified().await;
    let slow = app.clone();
    let second = tokio::spawn(async move { send(&slow, request("/mails", "k-1"), staying().text()).await });
    shop.shop.gate.entered.notified().await;
    assert_eq!(shop.calls(), 2);
    shop.shop.gate.opens.notify_one();
    shop.shop.gate.opens.notify_one();
    // One permit is kept at a time, so the second one is given when the first was taken.
    let (first, second) = loop {
        if first.is_finished() && second.is_finished() {
            break (first.await.unwrap(), second.await.unwrap());
        }
        shop.shop.gate.opens.notify_one();
        tokio::task::yield_now().await;
    };
    assert_eq!((first.status, second.status), (StatusCode::OK, StatusCode::OK));
    assert!(send(&app, request("/mails", "k-1"), staying().text()).await.is_replayed());
}

/// The end of a claim fails this often.
#[derive(Default)]
struct BrokenEnds(AtomicU32);

impl CommitHook for BrokenEnds {
    fn at(&self, point: CommitPoint) -> BoxFuture<'static, CommitFate> {
        let is_end = matches!(point, CommitPoint::Committing("complete_key" | "release_key"));
        let is_broken = |left: u32| left.checked_sub(1);
        let breaks = is_end && self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, is_broken).is_ok();
        let error = || StoreError::new(StoreErrorKind::Unavailable, "end", "the connection broke");
        Box::pin(std::future::ready(if breaks { CommitFate::Fail(error()) } else { CommitFate::Proceed }))
    }
}

/// A store that cannot be reached for a moment when the handler has ended does not lead to a second call.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_claim_is_tried_again() {
    let shop = Application::<MemoryStore>::start().await;
    let broken = Arc::new(BrokenEnds::default());
    let store = shop.store.clone().with_commit_hook(Arc::clone(&broken) as Arc<dyn CommitHook>);
    let app = routes(&Idempotency::of_store(store).principal(user), &shop.shop);
    for (key, status, calls) in [("kept", 200, 1), ("freed", 503, 3)] {
        broken.0.store(3, Ordering::SeqCst);
        let order = Order { status, ..Order::of("hello") };
        let first = send(&app, request("/mails", key), order.text()).await;
        assert_eq!(first.status.as_u16(), status);
        let again = send(&app, request("/mails", key), order.text()).await;
        assert_eq!(again.status, StatusCode::CONFLICT);
        tokio::time::sleep(Duration::from_secs(5)).await;
        let again = send(&app, request("/mails", key), order.text()).await;
        assert_eq!((again.status.as_u16(), again.is_replayed(), shop.calls()), (status, status == 200, calls));
    }
}
