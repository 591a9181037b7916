//! Commits whose outcome is unknown, connections that break in the middle of a request, and a server that takes no writes.

use std::sync::atomic::Ordering;

use http::StatusCode;
use saga_core::memory::MemoryStore;
use saga_http::Idempotency;
use saga_postgres::{PostgresOptions, PostgresStore};
use saga_servers::{Cut, Direction, FaultProxy};

use crate::support::application::{routes, user};
use crate::support::{Answer, Application, Ledger, Order, on_each_store, request, send};

/// The bytes between two places where a connection is cut. It divides no message evenly.
const STEP: usize = 23;

on_each_store!(an_unknown_commit_is_found_out);

pub(crate) async fn an_unknown_commit_is_found_out<S: Ledger>(shop: Application<S>) {
    for commits in [false, true] {
        let name = format!("rent-{commits}");
        let in_doubt = Idempotency::of_store(shop.store.doubtful(commits)).principal(user).required();
        let in_doubt = routes(&in_doubt, &shop.shop);
        let order = Order::of(&name);
        let unknown = send(&in_doubt, request("/payments", &name), order.text()).await;
        assert_eq!((unknown.status, &unknown.json()["status"]), (StatusCode::SERVICE_UNAVAILABLE, &503.into()));
        assert_eq!(unknown.headers["retry-after"], "1");
        let again = shop.pay(&name, &order).await;
        assert_eq!((again.status, again.is_replayed()), (StatusCode::OK, commits));
        assert_eq!((shop.store.payments(&name).await, again.body), (1, format!("1 of {name}").into_bytes()));
    }
}

/// Sends a request until it is answered for good.
async fn insist<S: Ledger>(shop: &Application<S>, key: &str, order: &Order) -> Answer {
    loop {
        let answer = shop.pay(key, order).await;
        if !answer.status.is_server_error() && answer.status != StatusCode::CONFLICT {
            return answer;
        }
        tokio::task::yield_now().await;
    }
}

/// Guarantees 1 and 2 where the connection to the server breaks after any of its bytes.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_breaks_anywhere_leaves_one_effect() {
    let (store, database) = PostgresStore::fresh().await;
    let proxy = FaultProxy::start(database.url()).await.unwrap();
    let through = PostgresStore::connect(proxy.url()).await.unwrap();
    let broken = Idempotency::of_store(through).principal(user).required();
    let shop = Application::on(store, database).await;
    let broken = routes(&broken, &shop.shop);
    let before = proxy.counts();
    assert_eq!(send(&broken, request("/payments", "first"), Order::of("first").text()).await.status, StatusCode::OK);
    assert_eq!(send(&broken, request("/payments", "warm"), Order::of("warm").text()).await.status, StatusCode::OK);
    let after = proxy.counts();
    let to_server = usize::try_from(after.bytes_to_server - before.bytes_to_server).unwrap();
    let to_client = usize::try_from(after.bytes_to_client - before.bytes_to_client).unwrap();
    for (direction, bytes) in [(Direction::ToServer, to_server), (Direction::ToClient, to_client)] {
        for position in (0..bytes).step_by(STEP) {
            let name = format!("{direction:?}-{position}");
            proxy.cut(Cut::after(direction, position as u64));
            let first = send(&broken, request("/payments", &name), Order::of(&name).text()).await;
            proxy.disarm();
            let last = insist(&shop, &name, &Order::of(&name)).await;
            assert_eq!(shop.store.payments(&name).await, 1, "{name}: {first:?}");
            assert_eq!(String::from_utf8(last.body).unwrap(), format!("1 of {name}"));
            assert!(first.status == StatusCode::OK || first.status.is_server_error(), "{name}: {first:?}");
        }
    }
}

/// What becomes of a request on a standby, with a key and without.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_takes_no_writes_runs_no_handler() {
    let (_store, database) = PostgresStore::fresh().await;
    let options = PostgresOptions::from_url(database.url()).unwrap().read_only();
    let reading = PostgresStore::connect_with(options).await.unwrap();
    let shop = Application::<MemoryStore>::start().await.shop;
    let app = routes(&Idempotency::of_store(reading).principal(user), &shop.on());
    let mut without = request("/payments", "k-1");
    without.headers_mut().unwrap().remove("idempotency-key");
    for request in [request("/payments", "k-1"), without] {
        let refused = send(&app, request, Order::of("rent").text()).await;
        assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE, "{refused:?}");
    }
    assert_eq!(shop.gate.calls.load(Ordering::SeqCst), 0, "no handler ran");
}
