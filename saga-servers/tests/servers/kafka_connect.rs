//! Kafka Connect: a connector that cannot run is said, with the reason. What one sends is tested in `tests`.

use saga_servers::{KafkaConnect, TansuServer};
use serde_json::json;

#[tokio::test]
async fn a_connector_that_does_not_start_is_an_error_with_its_reason() {
    let tansu = TansuServer::start().await.expect("tansu starts");
    let config = json!({
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "database.hostname": "127.0.0.1",
        // Nothing listens there.
        "database.port": "1",
        "database.user": "debezium",
        "database.password": "secret",
        "database.dbname": "shop",
        "topic.prefix": "shop",
    });
    let connector = json!({ "name": "orders", "config": config });
    let error = KafkaConnect::start(&tansu.brokers(), &[connector]).await.expect_err("it cannot connect");
    let said = error.to_string();
    assert!(said.contains("Kafka Connect did not start: it ended"), "{said}");
    assert!(said.contains("Connection to 127.0.0.1:1 refused"), "{said}");
    assert!(!said.contains("secret"), "{said}");
}
