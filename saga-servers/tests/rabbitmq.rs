//! RabbitMQ: one test, since it starts slowly.

use std::time::Duration;

use saga_servers::{Error, Management, RabbitMqServer};
use serde_json::json;

#[tokio::test]
async fn what_was_confirmed_survives_a_kill_and_a_stop() -> Result<(), Error> {
    let mut server = RabbitMqServer::start().await?;
    let management = server.management()?;
    let url = server.create_vhost("orders/test").await?;
    assert!(url.ends_with("/orders%2Ftest"), "{url}");

    let queue = json!({ "durable": true, "arguments": { "x-queue-type": "quorum" } });
    management.put("queues/orders%2Ftest/work", &queue).await?;
    let message = json!({
        "properties": { "delivery_mode": 2 }, "routing_key": "work", "payload": "reserve", "payload_encoding": "string"
    });
    let published = management.post("exchanges/orders%2Ftest/amq.default/publish", &message).await?;
    assert_eq!(published["routed"], true);

    server.kill().await?;
    assert!(management.get("overview").await.is_err(), "a killed broker answers");
    server.restart().await?;
    has_a_message(&management, "queues/orders%2Ftest/work").await?;
    let take = json!({ "count": 5, "ackmode": "ack_requeue_true", "encoding": "auto" });
    let taken = management.post("queues/orders%2Ftest/work/get", &take).await?;
    assert_eq!(taken[0]["payload"], "reserve", "{taken}");

    server.stop().await?;
    server.restart().await?;
    has_a_message(&management, "queues/orders%2Ftest/work").await?;
    let taken = management.post("queues/orders%2Ftest/work/get", &take).await?;
    assert_eq!(taken[0]["payload"], "reserve", "{taken}");
    let missing = management.get("queues/orders%2Ftest/other").await.expect_err("there is none").to_string();
    assert!(missing.contains("404"), "{missing}");
    Ok(())
}

/// A broker is up before its quorum queues have a leader again.
async fn has_a_message(management: &Management, path: &str) -> Result<(), Error> {
    let mut looks = 0;
    loop {
        let queue = management.get(path).await?;
        if queue["state"] == "running" && queue["messages"] == 1 {
            return Ok(());
        }
        looks += 1;
        assert!(looks < 600, "{queue}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
