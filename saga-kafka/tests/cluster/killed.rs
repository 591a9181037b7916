//! A broker that ends by SIGKILL and comes back with what it confirmed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use saga_core::transport::{Message, Transport};
use saga_kafka::KafkaTransport;
use saga_servers::TansuServer;

use crate::support::messages::{PATIENCE, accept, message, number, publish, receive, subscribe, take};
use crate::support::on_tansu;

const COUNT: u32 = 240;
const KEYS: u32 = 6;
/// How many numbers have come when the broker is killed.
const KILLS: [usize; 3] = [20, 90, 170];

/// Sends all numbers in their order, each until it is confirmed, as a relay does, and counts how often one may be there twice.
async fn relay(transport: KafkaTransport, unknown: Arc<AtomicU32>) {
    for number in 0..COUNT {
        let message = Message { key: format!("k-{}", number % KEYS), ..message(number) };
        while transport.publish(vec![message.clone()]).await[0].is_err() {
            unknown.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The messages that the receiver got, and how many of them came again without being marked as redelivered.
#[derive(Default)]
struct Came {
    numbers: BTreeSet<u32>,
    last_of_keys: BTreeMap<u32, u32>,
    unmarked_again: u32,
}

impl Came {
    /// The messages of a key come in their order, but for what comes again.
    fn note(&mut self, number: u32, is_redelivered: bool) {
        if !self.numbers.insert(number) {
            self.unmarked_again += u32::from(!is_redelivered);
            return;
        }
        let before = self.last_of_keys.insert(number % KEYS, number);
        assert!(before.is_none_or(|before| before < number), "{number} came behind {before:?}");
    }
}

/// G8 and G9: what a broker confirmed survives its end, in the order of its keys, and comes again only where it is marked, or was sent
/// again since its confirmation was lost.
///
/// It does not show a kill in the middle of a write: tansu then loses what it confirmed, so `TansuServer::kill` waits for writes. Its
/// gateway keeps the metadata of offsets, which tansu does not give back.
#[tokio::test(flavor = "multi_thread")]
async fn g8_a_killed_broker_loses_and_doubles_nothing() {
    let mut server = TansuServer::start_durable().await.unwrap();
    let options = on_tansu(&server, "k.").publish_timeout(Duration::from_secs(1));
    let transport = KafkaTransport::connect_with(options.clone()).await.unwrap();
    let mut incoming = subscribe(&transport, "a", 10).await;
    let unknown = Arc::new(AtomicU32::new(0));
    let relay = tokio::spawn(relay(transport.clone(), Arc::clone(&unknown)));
    let mut came = Came::default();
    let mut kills = KILLS.into_iter().peekable();
    while came.numbers.len() < COUNT as usize {
        for delivery in receive(&mut incoming, 1).await {
            came.note(number(&delivery), delivery.redelivered);
            accept(&mut incoming, &[delivery]).await;
        }
        if kills.next_if(|count| came.numbers.len() >= *count).is_some() {
            server.kill().await.unwrap();
            server.restart().await.unwrap();
        }
    }
    assert_eq!(kills.next(), None, "the broker was killed each time");
    tokio::time::timeout(PATIENCE, relay).await.expect("all is confirmed").unwrap();
    let unknown = unknown.load(Ordering::Relaxed);
    assert!(came.unmarked_again <= unknown, "{} came again of {unknown} that were sent again", came.unmarked_again);
    // What was accepted is committed, and so was it before the last kill.
    drop(incoming);
    transport.close().await;
    server.kill().await.unwrap();
    server.restart().await.unwrap();
    let second = KafkaTransport::connect_with(options).await.unwrap();
    let mut incoming = subscribe(&second, "a", 10).await;
    publish(&second, vec![message(COUNT)]).await;
    // The second copy of what was sent twice may come only now.
    let mut copies = came.unmarked_again;
    while take(&mut incoming, 1).await != [COUNT] {
        copies += 1;
    }
    assert!(copies <= unknown, "{copies} came again of {unknown} that were sent again");
}

/// A broker that is silent takes nothing; what was sent meanwhile is sent again, and arrives.
#[tokio::test(flavor = "multi_thread")]
async fn a_silent_broker_is_waited_for() {
    let mut server = TansuServer::start().await.unwrap();
    let options = on_tansu(&server, "k.").publish_timeout(Duration::from_secs(1));
    let transport = KafkaTransport::connect_with(options).await.unwrap();
    let mut incoming = subscribe(&transport, "a", 10).await;
    publish(&transport, vec![message(1)]).await;
    assert_eq!(take(&mut incoming, 1).await, [1]);
    server.freeze().unwrap();
    let answers = transport.publish(vec![message(2)]).await;
    assert_eq!(answers[0].as_ref().unwrap_err().kind(), saga_core::transport::TransportErrorKind::Unknown);
    server.resume().unwrap();
    publish(&transport, vec![message(2)]).await;
    // On a busy machine the first was sent again too, since its confirmation was late.
    while take(&mut incoming, 1).await != [2] {}
}
