use std::time::Duration;

use saga_core::Runtime;
use saga_core::transport::{Subscription, Transport as _, service_topic};
use saga_postgres::PostgresStore;
use saga_servers::RabbitMqCluster;
use tokio::time::Instant;

use crate::place::{Place, charges, create_order, orders, payments, transport};

/// The node that leads the queues; the services are connected to the others.
const LEADER: usize = 0;

/// Runs so many sagas, beside each other, and answers how long it took.
async fn run(coordinator: &Runtime<PostgresStore>, names: &str, count: i64) -> Duration {
    let begun = Instant::now();
    let mut running = Vec::new();
    for number in 0..count {
        running.push(coordinator.start(&create_order(), format!("{names}-{number}"), number).await.unwrap());
    }
    for running in running {
        assert_eq!(running.outcome().await.unwrap().to_string(), "completed");
    }
    begun.elapsed()
}

/// The node that leads all queues freezes: its connections stay, and nothing answers. The others elect another leader.
#[tokio::test(flavor = "multi_thread")]
async fn g8_sagas_go_on_while_the_leader_of_their_queues_is_frozen() {
    const COUNT: i64 = 20;
    let place = Place::new("cluster").await;
    let mut cluster = RabbitMqCluster::start().await.unwrap();
    let first = transport(&cluster.url_from(LEADER)).await;
    for service in ["orders", "payments"] {
        let topic = service_topic(service);
        let subscription = Subscription { name: topic.clone(), topics: vec![topic.clone()], prefetch: 1 };
        drop(first.subscribe(subscription).await.unwrap());
        let queue = format!("{}{topic}", first.options().name_prefix());
        assert_eq!(cluster.leader_of(&queue, LEADER).await.unwrap(), LEADER, "who declares a queue has its leader");
    }
    let host = payments(place.payments.url(), transport(&cluster.url_from(1)).await).await;
    let coordinator = orders(place.orders.url(), transport(&cluster.url_from(2)).await).await;
    run(&coordinator, "before", COUNT).await;
    cluster.node(LEADER).freeze().unwrap();
    let first = run(&coordinator, "frozen", COUNT).await;
    let then = run(&coordinator, "then", COUNT).await;
    cluster.node(LEADER).resume().unwrap();
    println!("with a frozen leader: {first:?}, then {then:?}");
    run(&coordinator, "after", COUNT).await;
    assert_eq!(charges(&host).await.len(), 4 * usize::try_from(COUNT).unwrap());
    coordinator.shutdown().await;
    host.shutdown().await;
}
