//! Python among services that know each other's events only.

use saga_amqp::AmqpTransport;
use saga_core::engine::TimelineStatus;
use saga_core::engine::{Became, Happened};
use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::store::Status;
use saga_core::{Event, Runtime, Service, StepError, saga_compensation, saga_step};
use saga_servers::shared::Vhost;
use saga_tests::{Books as _, eventually};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::participant::{receives, start};

#[derive(Debug, Clone, Serialize, Deserialize)]
struct OrderPlaced {
    quantity: i64,
}

impl Event for OrderPlaced {
    const NAME: &'static str = "order-placed";
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct StockReserved {
    quantity: i64,
}

impl Event for StockReserved {
    const NAME: &'static str = "stock-reserved";
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct PackingFailed {}

impl Event for PackingFailed {
    const NAME: &'static str = "packing-failed";
}

#[saga_step(compensate = release)]
async fn reserve(tx: &mut MemoryConn, quantity: i64) -> Result<i64, StepError> {
    if quantity > 10 {
        return Err(StepError::reject("sold out"));
    }
    MemoryStore::add(tx, "reserved", quantity).await
}

#[saga_compensation]
async fn release(tx: &mut MemoryConn, quantity: i64) -> Result<(), StepError> {
    MemoryStore::add(tx, "reserved", -quantity).await.map(drop)
}

/// It reserves, takes that back where the packing in Python fails, and tells Python of both.
fn stock() -> Service<MemoryStore> {
    Service::named("stock")
        .reports_to("packing")
        .on::<OrderPlaced>()
        .run_with::<reserve>(|order| order.quantity)
        .emits::<StockReserved>(|quantity, _| StockReserved { quantity: *quantity })
        .on::<PackingFailed>()
        .undo::<reserve>()
        .build()
        .unwrap()
}

/// It follows the orders.
fn desk() -> Service<MemoryStore> {
    let desk = Service::named("desk").on::<OrderPlaced>().mark_begun();
    desk.on::<PackingFailed>().mark_compensated().build().unwrap()
}

/// All that may become of a step, as a fact has it.
const BECAME: [(&str, Became); 6] = [
    ("done", Became::Done),
    ("rejected", Became::Rejected),
    ("failed", Became::Failed),
    ("stuck", Became::Stuck),
    ("barred", Became::Tombstoned),
    ("undone", Became::Undone),
];

/// A service with a store of its own, once messages reach it.
async fn run(vhost: &Vhost, service: &Service<MemoryStore>) -> Runtime<MemoryStore> {
    let transport = AmqpTransport::connect(vhost.url()).await.unwrap();
    let runtime = Runtime::builder(MemoryStore::new()).transport(transport.clone()).service(service);
    let runtime = runtime.start().await.unwrap();
    receives(&transport).await;
    runtime
}

fn is(message: &Value, kind: Option<&str>, name: &str, cause: &str) {
    let headers = &message["headers"];
    assert_eq!((headers.get("saga-kind").and_then(Value::as_str), &message["type"]), (kind, &json!(name)), "{message}");
    let of = headers.get("saga-cause").unwrap_or(&headers["saga-key"]);
    assert_eq!(of, cause, "{message}");
}

/// What became of a step of the packing, by the desk.
fn packing(timeline: &TimelineStatus) -> Vec<(Became, Option<String>)> {
    let entries = timeline.entries.iter().filter_map(|entry| match &entry.what {
        Happened::Step { step, became, reason } if step == "packing/pack" => Some((*became, reason.clone())),
        _ => None,
    });
    entries.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn events_and_facts_go_both_ways() {
    let (vhost, mut packing_service) = start("packing", &["stock-reserved"]).await;
    let stock = run(&vhost, &stock()).await;
    let desk = run(&vhost, &desk()).await;
    packing_service.run(json!(["happened", "order-placed", "o-0", { "quantity": 99 }])).await;
    let sold_out = packing_service.run(json!(["take"])).await;
    is(&sold_out, Some("fact"), "reserve", "o-0");
    assert_eq!((&sold_out["body"]["b"], &sold_out["body"]["r"]), (&json!("rejected"), &json!("sold out")));
    assert!(sold_out["body"]["n"].is_u64() && sold_out["headers"]["saga-reply-to"] == "stock", "{sold_out}");

    packing_service.run(json!(["happened", "order-placed", "o-1", { "quantity": 3 }])).await;
    // One is published as an event, and the other is addressed: their order is not promised.
    let mut came = [packing_service.run(json!(["take"])).await, packing_service.run(json!(["take"])).await];
    came.sort_by_key(|message| message["headers"].get("saga-kind").is_some());
    is(&came[0], None, "stock-reserved", "o-1");
    assert_eq!(came[0]["body"], json!({ "quantity": 3 }));
    is(&came[1], Some("fact"), "reserve", "o-1");
    assert_eq!(came[1]["body"]["b"], "done");
    assert_eq!(stock.store().counter("reserved").await, 3);

    for (number, (name, _)) in BECAME.iter().enumerate() {
        let body = json!({ "n": number, "b": name, "r": format!("it is {name}") });
        packing_service.run(json!(["fact", "desk", "o-1", "pack", body])).await;
    }
    packing_service.run(json!(["happened", "packing-failed", "o-1", {}])).await;
    let undone = packing_service.run(json!(["take"])).await;
    is(&undone, Some("fact"), "reserve", "o-1");
    assert_eq!(undone["body"]["b"], "undone");
    assert_eq!(stock.store().counter("reserved").await, 0);
    let followed = async || {
        let timeline = desk.admin().query().timeline("o-1").await.unwrap()?;
        let packed = packing(&timeline);
        (timeline.status == Status::Compensated && packed.len() == BECAME.len()).then_some(packed)
    };
    let packed = eventually("the timeline of the order", followed).await;
    for (name, became) in BECAME {
        assert!(packed.contains(&(became, Some(format!("it is {name}")))), "{name}: {packed:?}");
    }
}
