//! Each column of a row is where the page says, and the transport reads it back.

use std::collections::HashMap;

use saga_core::transport::{Incoming, Message, Settlement, Subscription, Transport as _};
use saga_core::{Event, Outcome, Runtime, Saga, StepContext, StepError, Tenant, saga_step};
use saga_tests::within;
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::outbox::{self, Row};
use crate::place::Place;
use crate::records;

/// How often the stock is counted under one key, for each tenant.
const COUNTS: u32 = 20;

#[derive(Serialize, Deserialize)]
struct StockCounted {
    quantity: u32,
}

impl Event for StockCounted {
    const NAME: &'static str = "stock-counted";
}

#[saga_step(no_compensation)]
async fn count_stock(_tx: &mut PgConnection, ctx: &StepContext, quantity: u32) -> Result<(), StepError> {
    ctx.emit(&StockCounted { quantity })
}

/// Receives as many messages as there are rows, by their ids.
async fn receive(incoming: &mut dyn Incoming, count: usize) -> HashMap<Uuid, Message> {
    let mut messages = HashMap::new();
    while messages.len() < count {
        for delivery in incoming.receive(count).await.unwrap() {
            incoming.settle(&[(delivery.tag, Settlement::Accept)]).await.unwrap();
            let message = delivery.message.expect("what a connector sends is a message");
            messages.insert(message.id.0, message);
        }
    }
    messages
}

/// What the transport makes of the record of a row.
fn as_row(message: Message, position: i64) -> Row {
    Row {
        id: message.id.0,
        tenant: message.tenant.as_str().to_owned(),
        aggregatetype: message.topic,
        aggregateid: message.key,
        event_type: message.event_type,
        position,
        committed_at: message.committed_at.0,
        payload: message.payload,
        kind: message.kind.as_str().to_owned(),
        headers: message.headers.encode(),
    }
}

/// Events whose payloads are no JSON, and whose keys are not plain.
fn odd_rows() -> Vec<Row> {
    let all_bytes: Vec<u8> = (0..=u8::MAX).collect();
    let odd = [("Größe 42/ü", all_bytes), ("a'b\"c\\d", b"\xff\xfe\0{".to_vec()), ("empty", Vec::new())];
    let odd = (1..).zip(odd).map(|(number, (key, payload))| Row {
        id: Uuid::from_u128(number),
        tenant: "acme".to_owned(),
        aggregatetype: "stock_counts".to_owned(),
        aggregateid: key.to_owned(),
        event_type: "stock-scanned".to_owned(),
        position: 1,
        // Long ago, and not what the connector's clock says.
        committed_at: 1_700_000_000_123_456,
        payload,
        kind: "event".to_owned(),
        headers: String::new(),
    });
    odd.collect()
}

async fn run() {
    let place = Place::new().await;
    let store = place.store("shop").await;
    let _worker = place.connect(&[place.connector("shop")]).await;
    let transport = place.transport().await;
    // The topic of the application's events, one of a saga's events, and its own.
    let topics = vec!["stock_counts".to_owned(), "count-stock".to_owned()];
    let subscription = Subscription { name: "audit".into(), topics, prefetch: 100 };
    let mut incoming = transport.subscribe(subscription).await.unwrap();
    let saga = Saga::named("count-stock").input::<u32>().step::<count_stock>().build().unwrap();
    let runtime = Runtime::builder(store.clone()).transport(transport.clone()).saga(&saga).start().await.unwrap();

    let tenants = [Tenant::default(), Tenant::new("acme").unwrap()];
    for quantity in 0..COUNTS {
        for tenant in &tenants {
            let runtime = runtime.tenant(tenant.clone());
            let mut tx = store.pool().begin().await.unwrap();
            let event = StockCounted { quantity };
            let published = runtime.publish("product-7", &event).topic("stock_counts").in_tx(&mut tx).await.unwrap();
            tx.commit().await.unwrap();
            published.committed();
        }
    }
    for tenant in &tenants {
        let running = runtime.tenant(tenant.clone()).start(&saga, "count-1", 7).await.unwrap();
        assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    }
    for row in odd_rows() {
        outbox::send(store.pool(), &row).await;
    }

    let rows = outbox::rows(store.pool()).await;
    assert_eq!(rows.len(), 2 * COUNTS as usize + 2 + odd_rows().len());
    let records = records::with_all(&place.brokers(), &rows).await;
    records::assert_are_of(&records, &rows);
    records::assert_keep_order(&records);
    let mut messages = receive(&mut *incoming, rows.len()).await;
    for row in &rows {
        let message = messages.remove(&row.id).expect("the message of a row");
        assert_eq!(as_row(message, row.position), *row);
    }
    runtime.shutdown().await;
    transport.close().await;
    store.close().await;
}

/// G9: also in the order of the positions under each key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g4_each_row_arrives_as_the_page_says() {
    within(Box::pin(run())).await;
}
