//! What a key costs on PostgreSQL, counted.

use std::time::Duration;

use saga_core::memory::MemoryStore;
use saga_core::store::StoreError;
use saga_http::Idempotency;
use saga_postgres::{PostgresOptions, PostgresStore, sqlx};
use saga_servers::{FaultProxy, Traffic};
use tokio::task::JoinSet;

use crate::support::application::{routes, user};
use crate::support::{Application, Ledger, Order, request, send};

/// The key is looked up by the message that begins the transaction, and the response is kept by the one that commits.
const MORE: u64 = 0;
/// The process has seen that the response is kept.
const REPLAY: u64 = 1;
/// A process that has not seen it begins a transaction, unless many requests of late were such.
const REPLAY_ELSEWHERE: u64 = 2;
/// How long the server may take until it shows what sessions counted that have ended.
const COUNTED_WITHIN: Duration = Duration::from_mins(1);

#[tokio::test(flavor = "multi_thread")]
async fn a_key_costs_no_round_trip() {
    let (_store, database) = PostgresStore::fresh().await;
    let proxy = FaultProxy::start(database.url()).await.unwrap();
    let through = connect(proxy.url()).await;
    let shop = Application::<MemoryStore>::start().await.shop;
    let app = routes(&Idempotency::of_store(through.clone()).principal(user).required(), &shop.on());
    let elsewhere = connect(proxy.url()).await;
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

/// A process that gets many replays of what another one answered looks each request up without a transaction. A new one costs it a
/// round trip more then, and not any more when there were many new ones.
#[tokio::test(flavor = "multi_thread")]
async fn replays_of_what_another_process_answered_cost_one_round_trip() {
    const REQUESTS: usize = 24;
    let (store, database) = PostgresStore::fresh().await;
    let proxy = FaultProxy::start(database.url()).await.unwrap();
    let through = connect(proxy.url()).await;
    let shop = Application::<MemoryStore>::start().await.shop;
    let app = routes(&Idempotency::of_store(store).principal(user).required(), &shop.on());
    let elsewhere = routes(&Idempotency::of_store(through).principal(user).required(), &shop.on());
    // Its connection is open, and its statements are prepared.
    assert!(!send(&elsewhere, request("/payments", "first"), Order::of("rent").text()).await.is_replayed());
    let (mut replays, mut new) = (Vec::new(), Vec::new());
    for number in 0..2 * REQUESTS {
        let key = format!("k-{number}");
        if number < REQUESTS {
            assert!(!send(&app, request("/payments", &key), Order::of("rent").text()).await.is_replayed());
        }
        let before = proxy.counts().round_trips;
        let answer = send(&elsewhere, request("/payments", &key), Order::of("rent").text()).await;
        assert_eq!(answer.is_replayed(), number < REQUESTS, "{number}: {answer:?}");
        let costs = if number < REQUESTS { &mut replays } else { &mut new };
        costs.push(proxy.counts().round_trips - before);
    }
    assert_eq!((replays[0], replays[REQUESTS - 1]), (REPLAY_ELSEWHERE, REPLAY), "{replays:?}");
    assert_eq!(new[0], new[REQUESTS - 1] + REPLAY, "{new:?}");
}

/// A plan that is made while the table is empty would read all of it later, if it did not use the index.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_looked_up_by_an_index_also_if_the_table_was_empty_at_first() {
    const REQUESTS: i64 = 30;
    let (store, database) = PostgresStore::fresh().await;
    sqlx::query("VACUUM ANALYZE saga.idempotency_keys").execute(store.pool()).await.unwrap();
    let shop = Application::<MemoryStore>::start().await.shop;
    let app = routes(&Idempotency::of_store(store.clone()).principal(user).required(), &shop.on());
    for number in 0..REQUESTS {
        let paid = send(&app, request("/payments", &format!("k-{number}")), Order::of("rent").text()).await;
        assert!(paid.status.is_success(), "{}", paid.status);
    }
    // A session tells what it counted when it ends.
    store.close().await;
    let reader = PostgresStore::connect(database.url()).await.unwrap();
    let counts = "SELECT n_tup_ins, seq_scan FROM pg_stat_user_tables WHERE relname = 'idempotency_keys'";
    let read_from_end_to_end = async {
        loop {
            let (kept, scans): (i64, i64) = sqlx::query_as(counts).fetch_one(reader.pool()).await.unwrap();
            if kept == REQUESTS {
                return scans;
            }
            tokio::task::yield_now().await;
        }
    };
    let scans = tokio::time::timeout(COUNTED_WITHIN, read_from_end_to_end).await.expect("the sessions have ended");
    assert!(scans < REQUESTS, "{scans} scans of the whole table for {REQUESTS} requests");
}

/// How many replays are asked for at once, and how many statements may look them up: one that is under way, and one for all that arrive
/// meanwhile. A few more, since nothing says when the last one has arrived.
const TOGETHER: usize = 60;
const STATEMENTS_MAX: u64 = 6;

/// Replays that arrive while a statement runs share the next one, and each gets its own response: its first one, or a refusal where it
/// is another request.
#[tokio::test]
async fn many_replays_share_a_round_trip() {
    let (_store, database) = PostgresStore::fresh().await;
    let proxy = FaultProxy::start(database.url()).await.unwrap();
    let through = connect(proxy.url()).await;
    let shop = Application::<MemoryStore>::start().await.shop;
    let app = routes(&Idempotency::of_store(through).principal(user).required(), &shop.on());
    let mut firsts = Vec::new();
    for number in 0..TOGETHER {
        let (key, order) = (format!("k-{number}"), Order::of(&format!("rent {number}")).text());
        firsts.push(send(&app, request("/payments", &key), order).await);
    }
    assert!(send(&app, request("/payments", "k-0"), Order::of("rent 0").text()).await.is_replayed());
    let before = proxy.counts().round_trips;
    proxy.set_traffic(Traffic::Stalls);
    let mut replays = JoinSet::new();
    for number in 0..TOGETHER {
        // Each fifth one has another payload.
        let what = if number % 5 == 4 { "another".to_owned() } else { format!("rent {number}") };
        let (app, key) = (app.clone(), format!("k-{number}"));
        replays.spawn(async move { (number, send(&app, request("/payments", &key), Order::of(&what).text()).await) });
    }
    for _ in 0..TOGETHER {
        tokio::task::yield_now().await;
    }
    proxy.set_traffic(Traffic::Flows);
    while let Some(answer) = replays.join_next().await {
        let (number, answer) = answer.unwrap();
        if number % 5 == 4 {
            assert_eq!(answer.status, http::StatusCode::UNPROCESSABLE_ENTITY, "{number}: {answer:?}");
        } else {
            assert!(answer.is_replayed(), "{number}: {answer:?}");
            assert_eq!(answer.body, firsts[number].body);
        }
    }
    let statements = proxy.counts().round_trips - before;
    assert!(statements <= STATEMENTS_MAX, "{TOGETHER} replays took {statements} round trips");
}

/// Replays that wait for a statement which fails look up for themselves.
#[tokio::test]
async fn a_statement_that_fails_fails_for_one_replay_only() {
    let (_store, database) = PostgresStore::fresh().await;
    let proxy = FaultProxy::start(database.url()).await.unwrap();
    let through = connect(proxy.url()).await;
    let shop = Application::<MemoryStore>::start().await.shop;
    let app = routes(&Idempotency::of_store(through).principal(user).required(), &shop.on());
    for number in 0..TOGETHER {
        assert!(
            send(&app, request("/payments", &format!("k-{number}")), Order::of("rent").text())
                .await
                .status
                .is_success()
        );
    }
    proxy.set_traffic(Traffic::Stalls);
    let mut replays = JoinSet::new();
    for number in 0..TOGETHER {
        let (app, key) = (app.clone(), format!("k-{number}"));
        replays.spawn(async move { send(&app, request("/payments", &key), Order::of("rent").text()).await });
    }
    for _ in 0..TOGETHER {
        tokio::task::yield_now().await;
    }
    proxy.cut_all();
    proxy.set_traffic(Traffic::Flows);
    let mut failed = 0;
    while let Some(answer) = replays.join_next().await {
        failed += usize::from(!answer.unwrap().is_replayed());
    }
    assert!(failed <= 2, "{failed} of {TOGETHER} replays failed with the connection of one");
}

/// A connection that is opened while another one comes back would have round trips of its own.
async fn connect(url: &str) -> PostgresStore {
    let options = PostgresOptions::from_url(url).unwrap().connections_max(1);
    PostgresStore::connect_with(options).await.unwrap()
}
