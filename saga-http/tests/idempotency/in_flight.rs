//! A second request while the first one runs, and clients that leave.

use std::sync::atomic::Ordering;

use http::StatusCode;

use crate::support::{Application, Ledger, Order, on_each_store, on_stores, request, send};

// SQLite runs one transaction at a time, so there the second request waits for its turn.
on_stores!(memory_at_once: saga_core::memory::MemoryStore => a_key_in_flight_is_refused, who_prefers_to_wait_gets_the_replay);
on_stores!(postgres_at_once: saga_postgres::PostgresStore => a_key_in_flight_is_refused, who_prefers_to_wait_gets_the_replay);
on_each_store!(a_client_that_leaves_loses_nothing);

fn staying() -> Order {
    Order { stays: true, ..Order::of("rent") }
}

/// Sends a request that stays in its handler.
async fn enter<S: Ledger>(shop: &Application<S>) -> tokio::task::JoinHandle<crate::support::Answer> {
    let app = shop.app.clone();
    let first = tokio::spawn(async move { send(&app, request("/payments", "k-1"), staying().text()).await });
    shop.shop.gate.entered.notified().await;
    first
}

pub(crate) async fn a_key_in_flight_is_refused<S: Ledger>(shop: Application<S>) {
    let first = enter(&shop).await;
    let second = shop.pay("k-1", &staying()).await;
    assert_eq!((second.status, &second.json()["status"]), (StatusCode::CONFLICT, &409.into()));
    assert_eq!(second.headers["retry-after"], "1");
    shop.shop.gate.opens.notify_one();
    let first = first.await.unwrap();
    assert_eq!((first.status, shop.calls()), (StatusCode::OK, 1));
    let third = shop.pay("k-1", &staying()).await;
    assert_eq!((third.is_replayed(), third.body), (true, first.body));
}

pub(crate) async fn who_prefers_to_wait_gets_the_replay<S: Ledger>(shop: Application<S>) {
    let first = enter(&shop).await;
    let none = send(&shop.app, request("/payments", "k-1").header("prefer", "wait=0"), staying().text()).await;
    assert_eq!(none.status, StatusCode::CONFLICT);
    let app = shop.app.clone();
    let waiting = request("/payments", "k-1").header("prefer", "respond-async, wait=60");
    let second = tokio::spawn(async move { send(&app, waiting, staying().text()).await });
    shop.shop.gate.opens.notify_one();
    let (first, second) = (first.await.unwrap(), second.await.unwrap());
    assert_eq!((second.status, second.is_replayed(), second.body), (StatusCode::OK, true, first.body));
    assert_eq!(shop.calls(), 1);
}

pub(crate) async fn a_client_that_leaves_loses_nothing<S: Ledger>(shop: Application<S>) {
    let first = enter(&shop).await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    shop.shop.gate.opens.notify_one();
    let waiting = request("/payments", "k-1").header("prefer", "wait=60");
    let second = send(&shop.app, waiting, staying().text()).await;
    assert_eq!((second.status, second.is_replayed(), &second.body[..]), (StatusCode::OK, true, &b"1 of rent"[..]));
    assert_eq!((shop.store.payments("rent").await, shop.shop.gate.calls.load(Ordering::SeqCst)), (1, 1));
}
