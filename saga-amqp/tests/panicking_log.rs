//! A log that panics, as one does that writes to a closed standard error, and a connection that nobody reads any more.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use saga_amqp::{AmqpOptions, AmqpTransport, ConnectionHealth, ConnectionState};
use saga_servers::{FaultProxy, Traffic};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use self::support::messages::{message, publish_until_confirmed, receive_all, subscribe};
use self::support::wait::until_holds;
use self::support::{Broker, unique_prefix};

/// How often the log panicked in an event of the client library.
static PANICKED: AtomicU64 = AtomicU64::new(0);

struct Unwritable;

impl Subscriber for Unwritable {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("lapin") || metadata.target().starts_with("saga")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        // The threads of the test itself have no shield around the library's events.
        if event.metadata().target().starts_with("lapin") {
            if std::thread::current().name() != Some("lapin-io-loop") {
                return;
            }
            PANICKED.fetch_add(1, Ordering::SeqCst);
        }
        panic!("failed printing to stderr");
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

fn options(url: &str) -> AmqpOptions {
    AmqpOptions::new(url).prefix(unique_prefix()).reconnect_delay_max(Duration::from_millis(200))
}

#[tokio::test(flavor = "multi_thread")]
async fn g10_a_log_that_panics_ends_no_connection() {
    tracing::subscriber::set_global_default(Unwritable).unwrap();
    let proxy = FaultProxy::start(&Broker::shared().url).await.unwrap();
    let transport = AmqpTransport::connect_with(options(proxy.url())).await.unwrap();
    let mut incoming = subscribe(&transport, "a", 10).await;
    publish_until_confirmed(&transport, vec![message(1)]).await;
    receive_all(&mut incoming, [1].into()).await;
    assert!(PANICKED.load(Ordering::SeqCst) > 0, "the thread that reads from the connection logs");
    // The loss of a connection is logged by the library and by whoever keeps it.
    proxy.cut_all();
    publish_until_confirmed(&transport, vec![message(2)]).await;
    receive_all(&mut incoming, [2].into()).await;
    until_holds("health", || transport.health().is_healthy()).await;
}

/// The connection looks open, and nothing that is written to it arrives. The heartbeats of the library are as long as they
/// may be, as if its thread had died with them.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_nobody_reads_is_found_and_made_again() {
    let broker = Broker::shared();
    let proxy = FaultProxy::start(&broker.url).await.unwrap();
    let prefix = unique_prefix();
    let looking = |url: &str| {
        let options = options(url).prefix(&prefix);
        options.heartbeat(Duration::from_secs(1)).connect_timeout(Duration::from_secs(10))
    };
    let url = format!("{}?heartbeat=3600", proxy.url());
    let receiver = AmqpTransport::connect_with(looking(&url)).await.unwrap();
    let sender = AmqpTransport::connect_with(looking(&broker.url)).await.unwrap();
    let mut incoming = subscribe(&receiver, "a", 10).await;
    publish_until_confirmed(&sender, vec![message(1)]).await;
    receive_all(&mut incoming, [1].into()).await;
    proxy.set_traffic(Traffic::Vanishes);
    publish_until_confirmed(&sender, vec![message(2)]).await;
    let receiving = tokio::spawn(async move {
        receive_all(&mut incoming, [2].into()).await;
    });
    let is_lost = |health: &ConnectionHealth| matches!(health.state, ConnectionState::Reconnecting { .. });
    let both_are_lost = || {
        let health = receiver.health();
        is_lost(&health.publisher) && health.subscriptions.iter().all(|one| is_lost(&one.connection))
    };
    until_holds("the loss of both connections, which are idle", both_are_lost).await;
    proxy.set_traffic(Traffic::Flows);
    receiving.await.unwrap();
    until_holds("health", || receiver.health().is_healthy()).await;
}
