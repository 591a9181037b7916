use saga_amqp::{AmqpTransport, ConnectionState};
use saga_core::engine::ComponentHealth;
use saga_servers::{FaultProxy, PostgresServer, Traffic, psql};
use saga_tests::{Warnings, eventually};

use crate::place::{Place, charges, create_order, orders, payments, transport};

/// How many calls may fail while a server is away for as long as it takes to see this many fail.
const FAILURES_SEEN: u64 = 20;

/// What each side subscribes to: its queue, and the dead letters of its queue.
const SUBSCRIPTIONS: usize = 2;

/// The database goes away and stays away: one warning, no more calls than the pauses allow, and everything goes on when
/// it comes back.
#[tokio::test]
async fn a_database_that_stays_away_is_warned_of_once_and_comes_back() {
    let place = Place::new("database_away").await;
    let mut server = PostgresServer::start().await.unwrap();
    psql(&server.url(), "CREATE DATABASE payments").await.unwrap();
    let host = payments(&server.url_of("payments"), place.transport().await).await;
    let coordinator = place.start_orders().await;
    let warnings = Warnings::default();
    let guard = tracing::subscriber::set_default(warnings.clone());
    let first = coordinator.start(&create_order(), "o-1", 12).await.unwrap();
    assert_eq!(first.outcome().await.unwrap().to_string(), "completed");
    server.kill().await.unwrap();
    let during = coordinator.start(&create_order(), "o-2", 13).await.unwrap();
    let standing = eventually("failures", async || match host.health().store {
        ComponentHealth::Failing { failures, since, last_error } if failures > FAILURES_SEEN => {
            Some((since, last_error))
        }
        _ => None,
    });
    let (since, last_error) = standing.await;
    assert!(!host.health().is_healthy() && !last_error.is_empty(), "{since:?} {last_error}");
    assert!(coordinator.health().is_healthy(), "the coordinator's own database is there");
    server.restart().await.unwrap();
    assert_eq!(during.outcome().await.unwrap().to_string(), "completed");
    eventually("health", async || host.health().is_healthy().then_some(())).await;
    assert_eq!(charges(&host).await, ["o-1:charge-card", "o-2:charge-card"]);
    drop(guard);
    let said = warnings.of("component=\"store\"");
    assert_eq!(said.len(), 1, "one warning of one outage: {:#?}", warnings.all());
    coordinator.shutdown().await;
    host.shutdown().await;
}

/// Whether each connection is known to be lost.
fn are_lost(transport: &AmqpTransport) -> bool {
    let health = transport.health();
    let subscriptions = health.subscriptions.iter().map(|subscription| &subscription.connection);
    let mut all = std::iter::once(&health.publisher).chain(subscriptions);
    all.all(|connection| connection.state != ConnectionState::Connected)
}

/// The broker goes away and stays away. Each connection is warned of once, nothing is lost, and everything goes on.
#[tokio::test]
async fn a_broker_that_stays_away_is_warned_of_once_and_comes_back() {
    let place = Place::new("broker_away").await;
    let proxy = FaultProxy::start(place.vhost.url()).await.unwrap();
    let (own, hosts) = (transport(proxy.url()).await, transport(proxy.url()).await);
    let host = payments(place.payments.url(), hosts.clone()).await;
    let coordinator = orders(place.orders.url(), own.clone()).await;
    let warnings = Warnings::default();
    let guard = tracing::subscriber::set_default(warnings.clone());
    let first = coordinator.start(&create_order(), "o-1", 12).await.unwrap();
    assert_eq!(first.outcome().await.unwrap().to_string(), "completed");
    // A subscription that does not stand yet is not lost: its first attempt fails, which is another warning.
    let stand = |transport: &AmqpTransport| transport.health().subscriptions.len() == SUBSCRIPTIONS;
    eventually("subscriptions", async || (stand(&own) && stand(&hosts)).then_some(())).await;
    proxy.set_traffic(Traffic::RefusesNew);
    proxy.cut_all();
    let during = coordinator.start(&create_order(), "o-2", 13).await.unwrap();
    eventually("failures", async || match coordinator.health().transport {
        ComponentHealth::Failing { failures, .. } if failures > 1 => Some(()),
        _ => None,
    })
    .await;
    // Each connection sees its own loss. One that had not seen it yet would pass for one that is back.
    eventually("the losses", async || (are_lost(&own) && are_lost(&hosts)).then_some(())).await;
    proxy.set_traffic(Traffic::Flows);
    assert_eq!(during.outcome().await.unwrap().to_string(), "completed");
    eventually("health", async || (own.health().is_healthy() && hosts.health().is_healthy()).then_some(())).await;
    eventually("health", async || coordinator.health().is_healthy().then_some(())).await;
    assert_eq!(charges(&host).await, ["o-1:charge-card", "o-2:charge-card"]);
    drop(guard);
    assert_eq!(warnings.of("component=\"transport\"").len(), 1, "{:#?}", warnings.all());
    let connections = warnings.of("publisher connection lost").len() + warnings.of("subscription lost").len();
    let each_side = 1 + SUBSCRIPTIONS;
    assert_eq!((connections, warnings.all().len()), (2 * each_side, 2 * each_side + 1), "{:#?}", warnings.all());
    coordinator.shutdown().await;
    host.shutdown().await;
}
