use std::time::Duration;

use saga_core::{Runtime, Saga, Service, StepContext, StepError, saga_step};
use saga_postgres::PostgresStore;
use saga_servers::shared::database;
use saga_tests::eventually;
use serde_json::{Value, json};
use sqlx::PgConnection;

use crate::place::{Place, charges, create_order};

mod contracts {
    use saga_core::{StepError, saga_step};

    #[saga_step(service = "shipping", no_compensation)]
    pub(crate) async fn ship(parcel: i64) -> Result<i64, StepError>;
}

#[saga_step(implements = contracts::ship)]
async fn ship(tx: &mut PgConnection, _ctx: &StepContext, parcel: i64) -> Result<i64, StepError> {
    sqlx::query("SELECT 1").execute(tx).await?;
    Ok(parcel)
}

fn ship_order() -> Saga<PostgresStore, i64> {
    Saga::named("ship-order").input::<i64>().step::<contracts::ship>().build().unwrap()
}

const FULL_AT: usize = 5;
const BATCH: usize = 20;

/// The queue of the payments is there with a limit, and nothing receives from it. Answers the path of the policy.
async fn limit_payments(place: &Place) -> String {
    place.start_payments().await.shutdown().await;
    let limit = json!({ "pattern": "^saga\\.service:payments$", "definition": { "max-length": FULL_AT }, "apply-to": "queues" });
    let policy = format!("policies/{}/full", place.vhost.name());
    place.vhost.management().put(&policy, &limit).await.unwrap();
    until_policy_is(place, &json!("full")).await;
    policy
}

async fn until_policy_is(place: &Place, policy: &Value) {
    let (management, path) = (place.vhost.management(), format!("queues/{}/saga.service:payments", place.vhost.name()));
    let is_so = async || (management.get(&path).await.unwrap_or_default()["policy"] == *policy).then_some(());
    eventually("the policy of the queue", is_so).await;
}

async fn start_orders(place: &Place) -> Runtime<PostgresStore> {
    Runtime::builder(PostgresStore::connect(place.orders.url()).await.unwrap())
        .transport(place.transport().await)
        .saga(&create_order())
        .saga(&ship_order())
        .settings(|settings| {
            settings.service = Some("orders".into());
            settings.publish_backoff_max = Duration::from_secs(1);
            settings.relay_batch = BATCH;
        })
        .start()
        .await
        .unwrap()
}

/// The queue of one service is full: whatever is for it waits in the outbox, more than is read from there at a time, and
/// another service is served all the same.
#[tokio::test(flavor = "multi_thread")]
async fn g8_a_full_quorum_queue_holds_up_no_other_service() {
    const ORDERS: usize = 60;
    let place = Place::new("full_queue").await;
    limit_payments(&place).await;
    let orders = start_orders(&place).await;
    let shipping_database = database("full_queue").await.unwrap();
    let service = Service::named("shipping").host::<ship>().build().unwrap();
    let shipping = Runtime::builder(PostgresStore::connect(shipping_database.url()).await.unwrap())
        .transport(place.transport().await)
        .service(&service)
        .start()
        .await
        .unwrap();
    for number in 0..ORDERS {
        orders.start(&create_order(), format!("o-{number}"), 12).await.unwrap();
    }
    let outbox = orders.admin().outbox();
    let waiting = eventually("parked keys", async || {
        let parked = outbox.parked().await.unwrap();
        (parked.len() > 2 * BATCH).then_some(parked)
    });
    for key in waiting.await {
        assert!(key.retry_at.is_some() && key.error.contains("its queue is full"), "{key:?}");
    }
    for number in 0..5 {
        let running = orders.start(&ship_order(), format!("s-{number}"), number).await.unwrap();
        let ended = tokio::time::timeout(Duration::from_secs(30), running.outcome()).await;
        assert_eq!(ended.expect("another service is served").unwrap().to_string(), "completed");
    }
    assert!(orders.health().is_healthy(), "a full queue is no outage: {:?}", orders.health());
    let payments = place.start_payments().await;
    eventually("all charges", async || (charges(&payments).await.len() == ORDERS).then_some(())).await;
    eventually("an empty outbox", async || (outbox.depth().await.unwrap().rows == 0).then_some(())).await;
    orders.shutdown().await;
    shipping.shutdown().await;
    payments.shutdown().await;
}

/// RabbitMQ does not tell a channel on which it refused messages that the limit of the queue was lifted: it goes on refusing
/// there. Another channel gets through.
#[tokio::test(flavor = "multi_thread")]
async fn g8_a_queue_whose_limit_is_lifted_takes_messages_again() {
    let place = Place::new("full_queue").await;
    let policy = limit_payments(&place).await;
    let orders = start_orders(&place).await;
    for number in 0..3 * FULL_AT {
        orders.start(&create_order(), format!("o-{number}"), 12).await.unwrap();
    }
    let outbox = orders.admin().outbox();
    eventually("parked keys", async || (!outbox.parked().await.unwrap().is_empty()).then_some(())).await;
    place.vhost.management().delete(&policy).await.unwrap();
    until_policy_is(&place, &Value::Null).await;
    eventually("an empty outbox", async || (outbox.depth().await.unwrap().rows == 0).then_some(())).await;
    orders.shutdown().await;
}
