//! What becomes of publishing and receiving when nodes of a cluster die, freeze and come back. The tests share one cluster of
//! three nodes, and run one after the other.

use std::collections::BTreeSet;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use saga_amqp::{AmqpOptions, AmqpTransport};
use saga_core::transport::{Incoming, Transport as _, TransportErrorKind};
use saga_servers::RabbitMqCluster;
use tokio::sync::{Mutex, MutexGuard, OnceCell};
use tokio::time::{Instant, timeout};

use crate::support::messages::{message, number, publish_until_confirmed, receive_all, subscribe};
use crate::support::unique_prefix;
use crate::support::wait::{PATIENCE, until_holds};

/// The node that leads the queues.
const LEADER: usize = 0;
/// The node that clients are connected to.
const OTHER: usize = 1;
/// How often messages are sent in the background of a fault.
const SEND_EVERY: Duration = Duration::from_millis(100);

/// After this time a frozen node is given up. It takes one and a quarter of the cluster's tick time, at most, and what is left is
/// for the election.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(15);
/// How long a leader is frozen, at least: it comes back when the work that it is not to hold up is done.
const FROZEN_FOR: Duration = Duration::from_mins(1);

static CLUSTER: OnceCell<Mutex<RabbitMqCluster>> = OnceCell::const_new();

/// The cluster, for one test at a time. What a test leaves frozen, also by failing, goes on behind it.
struct Borrowed(MutexGuard<'static, RabbitMqCluster>);

impl Deref for Borrowed {
    type Target = RabbitMqCluster;

    fn deref(&self) -> &RabbitMqCluster {
        &self.0
    }
}

impl DerefMut for Borrowed {
    fn deref_mut(&mut self) -> &mut RabbitMqCluster {
        &mut self.0
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        // If this fails, the next test says so.
        _ = self.0.resume_all();
    }
}

/// The cluster with all of its nodes, also if the test before failed with a node frozen or killed. Another one takes the place of a
/// cluster that does not come back, so that a failure is of one test.
async fn cluster() -> Borrowed {
    let cluster = CLUSTER.get_or_init(async || Mutex::new(RabbitMqCluster::start().await.unwrap())).await;
    let mut cluster = Borrowed(cluster.lock().await);
    if let Err(error) = cluster.make_whole().await {
        eprintln!("the cluster does not come back, and another one is started: {error}");
        *cluster = RabbitMqCluster::start().await.unwrap();
    }
    cluster
}

fn options(cluster: &RabbitMqCluster, first: usize, prefix: &str) -> AmqpOptions {
    AmqpOptions::new(cluster.url_from(first)).prefix(prefix).reconnect_delay_max(Duration::from_millis(500))
}

async fn connect(options: AmqpOptions) -> AmqpTransport {
    AmqpTransport::connect_with(options).await.expect("the cluster can be connected to")
}

/// A transport and a receiver on the node of that number, and a queue that another one leads.
struct Place {
    prefix: String,
    transport: AmqpTransport,
    incoming: Box<dyn Incoming>,
    sent: u32,
}

impl Place {
    async fn new(cluster: &RabbitMqCluster) -> Self {
        Self::with(cluster, |options| options).await
    }

    async fn with(cluster: &RabbitMqCluster, set: fn(AmqpOptions) -> AmqpOptions) -> Self {
        let prefix = unique_prefix();
        // Who declares a queue has its leader.
        drop(subscribe(&connect(options(cluster, LEADER, &prefix)).await, "a", 10).await);
        let transport = connect(set(options(cluster, OTHER, &prefix))).await;
        let incoming = subscribe(&transport, "a", 100).await;
        let mut place = Self { prefix, transport, incoming, sent: 0 };
        assert_eq!(place.leader(cluster, OTHER).await, LEADER);
        // The channel is known to the queue from now on.
        place.exchange(10).await;
        place
    }

    /// Waits until every node is back, and the queue on it.
    async fn whole(&self, cluster: &mut RabbitMqCluster) {
        cluster.make_whole().await.unwrap();
        for asked in 0..RabbitMqCluster::NODES {
            cluster.is_whole(&format!("{}a", self.prefix), asked).await.unwrap();
        }
    }

    async fn leader(&self, cluster: &RabbitMqCluster, asked: usize) -> usize {
        cluster.leader_of(&format!("{}a", self.prefix), asked).await.unwrap()
    }

    /// Sends and receives so many messages.
    async fn exchange(&mut self, count: u32) {
        let numbers: BTreeSet<u32> = (self.sent..self.sent + count).collect();
        self.sent += count;
        publish_until_confirmed(&self.transport, numbers.iter().copied().map(message).collect()).await;
        receive_all(&mut self.incoming, numbers).await;
    }

    /// The same, and how long it took.
    async fn exchange_timed(&mut self, count: u32) -> Duration {
        let begun = Instant::now();
        self.exchange(count).await;
        begun.elapsed()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn g4_work_goes_on_while_a_leader_is_frozen() {
    let mut cluster = cluster().await;
    let mut place = Place::new(&cluster).await;
    cluster.node(LEADER).freeze().unwrap();
    let begun = Instant::now();
    let first = place.exchange_timed(20).await;
    // A connection that is new has not heard of another leader. It is told of the frozen one until that is given up.
    tokio::time::sleep(GIVEN_UP_AFTER.saturating_sub(begun.elapsed())).await;
    let fresh = connect(options(&cluster, OTHER, &place.prefix)).await;
    let mut longest = Duration::ZERO;
    let mut rounds = 0;
    while begun.elapsed() < FROZEN_FOR {
        longest = longest.max(place.exchange_timed(20).await);
        let asked = Instant::now();
        publish_until_confirmed(&fresh, vec![message(10_000 + rounds)]).await;
        receive_all(&mut place.incoming, [10_000 + rounds].into()).await;
        longest = longest.max(asked.elapsed());
        rounds += 1;
        tokio::time::sleep(SEND_EVERY).await;
    }
    println!("frozen leader: {first:?}, then {longest:?} at most in {rounds} rounds");
    assert!(place.transport.health().is_healthy(), "its own node was there: {:?}", place.transport.health());
    cluster.node(LEADER).resume().unwrap();
    // Nothing was sent twice: a message in doubt was waited for.
    let again = timeout(Duration::from_secs(1), place.incoming.receive(100)).await;
    assert!(again.is_err(), "{:?}", again.map(|came| came.unwrap().iter().map(number).collect::<Vec<_>>()));
    // The node that was frozen finds out what it missed, and its part of the queue comes back.
    place.whole(&mut cluster).await;
    place.exchange(20).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_connected_to_a_frozen_node_goes_to_another() {
    let mut cluster = cluster().await;
    let mut place = Place::new(&cluster).await;
    // Of the queue it is a follower.
    cluster.node(OTHER).freeze().unwrap();
    let begun = Instant::now();
    publish_until_confirmed(&place.transport, vec![message(1_000)]).await;
    let took = begun.elapsed();
    let fresh = timeout(PATIENCE, AmqpTransport::connect_with(options(&cluster, OTHER, &place.prefix))).await;
    cluster.node(OTHER).resume().unwrap();
    println!("frozen own node: {took:?}");
    assert!(fresh.is_ok_and(|connected| connected.is_ok()), "a frozen node is passed over by who connects");
    receive_all(&mut place.incoming, [1_000].into()).await;
    place.exchange(20).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn g4_killed_nodes_lose_nothing() {
    let mut cluster = cluster().await;
    let mut place = Place::new(&cluster).await;
    tokio::time::sleep(saga_servers::RabbitMqServer::QUEUE_SETTLING_TIME).await;
    for (killed, what) in [(LEADER, "the leader"), (2, "a follower"), (OTHER, "the own node")] {
        cluster.node(killed).kill().await.unwrap();
        let took = place.exchange_timed(50).await;
        println!("{what} killed: {took:?}");
        cluster.node(killed).restart().await.unwrap();
        place.whole(&mut cluster).await;
        place.exchange(50).await;
    }
    until_holds("health", || place.transport.health().is_healthy()).await;
}

/// A channel that sends to a queue for the first time asks the node of its leader. If that node is down and no other leader is
/// elected yet, the broker nacks, and it goes on doing so on this channel until the node is back.
#[tokio::test(flavor = "multi_thread")]
async fn g8_a_channel_from_before_an_election_is_replaced() {
    const FOLLOWERS: [usize; 2] = [OTHER, 2];
    let mut cluster = cluster().await;
    let mut place = Place::new(&cluster).await;
    tokio::time::sleep(saga_servers::RabbitMqServer::QUEUE_SETTLING_TIME).await;
    let queue = format!("{}a", place.prefix);
    cluster.suspend_members(&queue, &FOLLOWERS).await.unwrap();
    cluster.node(LEADER).kill().await.unwrap();
    let fresh = connect(options(&cluster, OTHER, &place.prefix)).await;
    let answers = fresh.publish(vec![message(1_000)]).await;
    assert_eq!(answers[0].as_ref().unwrap_err().kind(), TransportErrorKind::Nacked, "{answers:?}");
    cluster.resume_members(&queue, &FOLLOWERS).await.unwrap();
    let resumed = Instant::now();
    place.exchange(20).await;
    publish_until_confirmed(&fresh, vec![message(1_000)]).await;
    let took = resumed.elapsed();
    println!("a channel from before the election: {took:?}");
    receive_all(&mut place.incoming, [1_000].into()).await;
    cluster.node(LEADER).restart().await.unwrap();
    place.whole(&mut cluster).await;
    place.exchange(20).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn g4_what_is_sent_without_a_quorum_waits_and_arrives_once_it_is_back() {
    let mut cluster = cluster().await;
    // What is said of messages in doubt is looked at before the nodes give each other up.
    let mut place = Place::with(&cluster, |options| options.confirm_timeout(Duration::from_secs(1))).await;
    let begun = Instant::now();
    for frozen in [LEADER, 2] {
        cluster.node(frozen).freeze().unwrap();
    }
    let answers = place.transport.publish(vec![message(1_000)]).await;
    let kind = answers[0].as_ref().unwrap_err().kind();
    assert_eq!(kind, TransportErrorKind::Unknown, "a queue without a leader is late: {answers:?}");
    assert!(place.transport.reachable().await.is_ok(), "its node is there");
    // What is in doubt holds up no call of its own again and again.
    for _ in 0..10 {
        let answers = place.transport.publish(vec![message(1_000)]).await;
        assert_eq!(answers[0].as_ref().unwrap_err().kind(), TransportErrorKind::Unknown);
    }
    // The node that is left gives up the others, and then itself: alone it may not serve. Nothing is said to be sent.
    while begun.elapsed() < GIVEN_UP_AFTER {
        let answers = place.transport.publish(vec![message(1_000)]).await;
        assert!(answers[0].is_err(), "sent without a quorum: {answers:?}");
        tokio::time::sleep(SEND_EVERY).await;
    }
    cluster.resume_all().unwrap();
    let back = Instant::now();
    publish_until_confirmed(&place.transport, vec![message(1_000)]).await;
    receive_all(&mut place.incoming, [1_000].into()).await;
    println!("with a quorum again: {:?}", back.elapsed());
    place.whole(&mut cluster).await;
    place.exchange(20).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn g4_a_rolling_restart_loses_nothing() {
    let mut cluster = cluster().await;
    let mut place = Place::new(&cluster).await;
    tokio::time::sleep(saga_servers::RabbitMqServer::QUEUE_SETTLING_TIME).await;
    let numbers: Vec<u32> = (1_000..1_200).collect();
    let queue = format!("{}a", place.prefix);
    let restarting = async {
        for node in 0..RabbitMqCluster::NODES {
            cluster.node(node).restart().await.unwrap();
            cluster.settled().await.unwrap();
            cluster.is_whole(&queue, node).await.unwrap();
        }
    };
    let sending = async {
        for number in &numbers {
            publish_until_confirmed(&place.transport, vec![message(*number)]).await;
            tokio::time::sleep(SEND_EVERY).await;
        }
    };
    let receiving = receive_all(&mut place.incoming, numbers.iter().copied().collect());
    tokio::join!(restarting, sending, receiving);
    // Who does not ask for messages does not subscribe again.
    place.exchange(20).await;
    until_holds("health", || place.transport.health().is_healthy()).await;
}
