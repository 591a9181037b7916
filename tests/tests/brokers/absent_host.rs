use saga_tests::eventually;

use crate::place::{Place, charges, create_order};

/// The queue of the host does not exist: what is for it waits where everybody sees it, and goes when the host comes.
#[tokio::test(flavor = "multi_thread")]
async fn a_coordinator_that_starts_before_its_host_completes_when_the_host_comes() {
    let place = Place::new("absent_host").await;
    let orders = place.start_orders().await;
    let running = orders.start(&create_order(), "o-1", 12).await.unwrap();
    let outbox = orders.admin().outbox();
    // More often than what is refused for what it is.
    let waiting =
        eventually("the sixth attempt", async || outbox.parked().await.unwrap().pop().filter(|key| key.attempts > 5));
    let waiting = waiting.await;
    assert!(waiting.retry_at.is_some(), "it is tried again by itself: {waiting:?}");
    assert!(waiting.error.contains("no queue takes the topic \"service:payments\""), "{waiting:?}");
    let depth = outbox.depth().await.unwrap();
    assert!((depth.rows, depth.parked) == (1, 1) && depth.oldest_age.is_some(), "{depth:?}");
    assert!(orders.health().is_healthy(), "{:?}", orders.health());
    let host = place.start_payments().await;
    assert_eq!(running.outcome().await.unwrap().to_string(), "completed");
    assert_eq!(charges(&host).await, ["o-1:charge-card"]);
    eventually("an empty outbox", async || (outbox.depth().await.unwrap().rows == 0).then_some(())).await;
    assert_eq!(outbox.parked().await.unwrap(), []);
    orders.shutdown().await;
    host.shutdown().await;
}
