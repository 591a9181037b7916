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

    // A queue of either kind only survives a kill for sure once it has settled: of classic ones too some were gone that
    // were declared a moment before.
    for name in ["classic", "quorum"] {
        declare_with_a_message(&management, name).await?;
    }
    tokio::time::sleep(RabbitMqServer::QUEUE_SETTLING_TIME).await;
    server.kill().await?;
    assert!(management.get("overview").await.is_err(), "a killed broker answers");
    server.restart().await?;
    for name in ["classic", "quorum"] {
        has_messages(&server, name, 1).await?;
        publish(&management, name).await?;
    }

    server.stop().await?;
    server.restart().await?;
    for name in ["classic", "quorum"] {
        has_messages(&server, name, 2).await?;
    }
    let missing = management.get("queues/orders%2Ftest/other").await.expect_err("there is none").to_string();
    assert!(missing.contains("404"), "{missing}");
    assert_eq!(server.log()?.matches("Server startup complete").count(), 3, "the log tells of each of its lives");

    server.survive_deleted_queues().await?;
    // What a process does whose queue is deleted before it looks for it.
    server
        .control(&[
            "eval",
            "supervisor:start_child(rabbit_fifo_dlx_sup, [{resource, <<\"/\">>, queue, <<\"gone\">>}]).",
        ])
        .await?;
    let supervisor = server.control(&["eval", "timer:sleep(500), whereis(rabbit_fifo_dlx_sup)."]).await?;
    assert!(supervisor.contains('<'), "dead lettering ended with one queue: {supervisor}\n{}", server.log()?);
    Ok(())
}

/// The name is the type too.
async fn declare_with_a_message(management: &Management, name: &str) -> Result<(), Error> {
    let queue = json!({ "durable": true, "arguments": { "x-queue-type": name } });
    management.put(&format!("queues/orders%2Ftest/{name}"), &queue).await?;
    publish(management, name).await
}

/// The interface answers once the broker confirmed the message.
async fn publish(management: &Management, name: &str) -> Result<(), Error> {
    let message = json!({
        "properties": { "delivery_mode": 2 }, "routing_key": name, "payload": "reserve", "payload_encoding": "string"
    });
    let published = management.post("exchanges/orders%2Ftest/amq.default/publish", &message).await?;
    assert_eq!(published["routed"], true);
    Ok(())
}

/// A broker is up before it knows its queues, and before these have a leader again.
async fn has_messages(server: &RabbitMqServer, name: &str, count: u64) -> Result<(), Error> {
    let management = server.management()?;
    let mut looks = 0;
    loop {
        let queue = match management.get(&format!("queues/orders%2Ftest/{name}")).await {
            Err(refused @ Error::Refused { .. }) => json!(refused.to_string()),
            queue => queue?,
        };
        if queue["state"] == "running" && queue["messages"] == count {
            return Ok(());
        }
        looks += 1;
        assert!(looks < 600, "{queue}\n{}", server.log()?);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
