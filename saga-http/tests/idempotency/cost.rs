//! What a key costs on PostgreSQL, counted.

use saga_core::memory::MemoryStore;
use saga_core::store::StoreError;
use saga_http::Idempotency;
use saga_postgres::PostgresStore;
use saga_servers::FaultProxy;

use crate::support::application::{routes, user};
use crate::support::{Application, Ledger, Order, request, send};

/// The key is looked up by the message that begins the transaction, and the response is kept by the one that commits.
const MORE: u64 = 0;
/// The process has seen that the response is kept.
const REPLAY: u64 = 1;
/// A process that has not seen it begins a transaction.
const REPLAY_ELSEWHERE: u64 = 2;

#[tokio::test(flavor = "multi_thread")]
async fn a_key_costs_no_round_trip() {
    let (_store, database) = PostgresStore::fresh().await;
    let proxy = FaultProxy::start(database.url()).await.unwrap();
    let through = PostgresStore::connect(proxy.url()).await.unwrap();
    let shop = Application::<MemoryStore>::start().await.shop;
    let app = routes(&Idempotency::of_store(through.clone()).principal(user).required(), &shop.on());
    let elsewhere = PostgresStore::connect(proxy.url()).await.unwrap();
    let elsewhere = routes(&Idempotency::of_store(elsewhere).principal(user).required(), &shop.on());
    let trips = || proxy.counts().round_trips;
    // Connections are open and statements are prepared after the first ones.
    let mut costs = [0; 4];
    for number in 0..3 {
        let (key, before) = (format!("k-{number}"), trips());
        let bare: Result<i64, StoreError> =
            through.write(async |conn| Ok(PostgresStore::pay(conn, "rent").await.unwrap())).await;
        bare.unwrap();
        let after_bare = trips();
        let first = send(&app, request("/payments", &key), Order::of("rent").text()).await;
        let after_first = trips();
        let again = send(&app, request("/payments", &key), Order::of("rent").text()).await;
        let after_again = trips();
        let other = send(&elsewhere, request("/payments", &key), Order::of("rent").text()).await;
        assert!(!first.is_replayed() && again.is_replayed() && other.is_replayed());
        costs = [after_bare - before, after_first - after_bare, after_again - after_first, trips() - after_again];
    }
    let [bare, keyed, replay, other] = costs;
    assert_eq!([keyed, replay, other], [bare + MORE, REPLAY, REPLAY_ELSEWHERE], "the handler alone: {bare}");
}
