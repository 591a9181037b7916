//! Orders whose commands, undos and replies go through the connector, which is killed.

use std::collections::BTreeMap;
use std::time::Duration;

use saga_core::memory::MemoryStore;
use saga_core::{
    Event, Outcome, Runtime, Saga, SagaHandle, Service, Settings, StepContext, StepError, Tenant, saga_compensation,
    saga_step,
};
use saga_postgres::PostgresStore;
use saga_tests::{eventually, within};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;

use crate::place::Place;
use crate::{outbox, page, records};

/// How many orders each tenant places before the connector is killed, and again before it is back.
const ORDERS: u32 = 6;
/// Each such order is too heavy, and is undone.
const HEAVY: u32 = 3;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Order {
    cents: i64,
    heavy: bool,
}

#[derive(Serialize, Deserialize)]
struct OrderPlaced {
    cents: i64,
}

impl Event for OrderPlaced {
    const NAME: &'static str = "order-placed";
}

mod contracts {
    use saga_core::{StepError, saga_step};

    use super::Order;

    #[saga_step(service = "payments", compensated)]
    pub(super) async fn charge_card(order: Order) -> Result<String, StepError>;

    #[saga_step(service = "shipping", no_compensation)]
    pub(super) async fn ship_order(order: Order) -> Result<(), StepError>;
}

/// Each effect is a row, so that one which takes place twice is seen.
async fn note(tx: &mut PgConnection, effect: &str, key: &str) -> Result<(), StepError> {
    sqlx::query("INSERT INTO effects (effect, key) VALUES ($1, $2)").bind(effect).bind(key).execute(tx).await?;
    Ok(())
}

#[saga_step(no_compensation)]
async fn place_order(tx: &mut PgConnection, ctx: &StepContext, order: Order) -> Result<(), StepError> {
    note(tx, "placed", ctx.key()).await?;
    ctx.emit(&OrderPlaced { cents: order.cents })
}

#[saga_step(implements = contracts::charge_card, compensate = refund_card)]
async fn charge_card(tx: &mut PgConnection, ctx: &StepContext, order: Order) -> Result<String, StepError> {
    note(tx, "charged", ctx.key()).await?;
    Ok(format!("payment of {}", order.cents))
}

#[saga_compensation]
async fn refund_card(
    tx: &mut PgConnection,
    ctx: &StepContext,
    order: Order,
    payment: Option<String>,
) -> Result<(), StepError> {
    assert_eq!(payment, Some(format!("payment of {}", order.cents)));
    note(tx, "refunded", ctx.key()).await
}

#[saga_step(implements = contracts::ship_order)]
async fn ship_order(order: Order) -> Result<(), StepError> {
    if order.heavy { Err(StepError::reject("too heavy")) } else { Ok(()) }
}

fn create_order() -> Saga<PostgresStore, Order> {
    Saga::named("create-order")
        .input::<Order>()
        .step::<place_order>()
        .step::<contracts::charge_card>()
        .step::<contracts::ship_order>()
        .build()
        .unwrap()
}

/// Orders and payments leave their messages to a connector each. Shipping sends its own to the same topics.
struct Shop {
    orders: Runtime<PostgresStore>,
    payments: Runtime<PostgresStore>,
    shipping: Runtime<MemoryStore>,
}

impl Shop {
    async fn open(place: &Place, orders: &PostgresStore, payments: &PostgresStore) -> Self {
        for store in [orders, payments] {
            let table = "CREATE TABLE effects (effect text NOT NULL, key text NOT NULL)";
            sqlx::query(table).execute(store.pool()).await.unwrap();
        }
        let pays = Service::named("payments").host::<charge_card>().build().unwrap();
        let ships = Service::named("shipping").host::<ship_order>().build().unwrap();
        let own_name = |settings: &mut Settings| {
            settings.service = Some("orders".into());
            // Nothing is asked for twice, so what is lost stays lost.
            settings.reply_timeout = Duration::from_mins(30);
        };
        let payments = Runtime::builder(payments.clone()).transport(place.transport().await).service(&pays);
        let shipping = Runtime::builder(MemoryStore::new()).transport(place.transport().await).service(&ships);
        let orders = Runtime::builder(orders.clone()).transport(place.transport().await).saga(&create_order());
        let (orders, payments, shipping) =
            tokio::try_join!(orders.settings(own_name).start(), payments.start(), shipping.start()).unwrap();
        Self { orders, payments, shipping }
    }

    /// Places orders of both tenants, under the same keys.
    async fn place_orders(&self, numbers: std::ops::Range<u32>) -> Vec<(u32, SagaHandle<PostgresStore>)> {
        let mut placed = Vec::new();
        for number in numbers {
            for tenant in [Tenant::default(), Tenant::new("acme").unwrap()] {
                let order = Order { cents: i64::from(number), heavy: number % HEAVY == 0 };
                let runtime = self.orders.tenant(tenant);
                let saga = runtime.start(&create_order(), format!("order-{number}"), order).await.unwrap();
                placed.push((number, saga));
            }
        }
        placed
    }

    async fn close(self) {
        tokio::join!(self.orders.shutdown(), self.payments.shutdown(), self.shipping.shutdown());
        self.orders.store().close().await;
        self.payments.store().close().await;
    }
}

/// How often each effect took place, by its name and key.
async fn effects(store: &PostgresStore) -> BTreeMap<(String, String), i64> {
    let sql = "SELECT effect, key, count(*) FROM effects GROUP BY effect, key";
    let counted: Vec<(String, String, i64)> = sqlx::query_as(sql).fetch_all(store.pool()).await.unwrap();
    counted.into_iter().map(|(effect, key, count)| ((effect, key), count)).collect()
}

async fn run() {
    let place = Place::new().await;
    let (orders, payments) = (place.store("orders").await, place.store("payments").await);
    let connectors = ["orders", "payments"].map(|database| page::renamed(place.connector(database), database));
    let mut worker = place.connect(&connectors).await;
    let shop = Shop::open(&place, &orders, &payments).await;

    let mut placed = shop.place_orders(0..ORDERS).await;
    eventually("a charge", async || (!effects(&payments).await.is_empty()).then_some(())).await;
    worker.kill().await.unwrap();
    placed.extend(shop.place_orders(ORDERS..2 * ORDERS).await);
    // Without these, nothing would depend on the connector that comes back.
    let unsent = eventually("messages that no connector has sent", async || {
        let unsent = records::unsent(&place.brokers(), &outbox::rows(orders.pool()).await).await;
        (unsent >= 2 * ORDERS as usize).then_some(unsent)
    })
    .await;
    println!("unsent while the connector was dead: {unsent}");
    worker.restart().await.unwrap();
    for (number, saga) in &placed {
        let outcome = saga.outcome().await.unwrap();
        let is_right = match number % HEAVY {
            0 => matches!(outcome, Outcome::Compensated { .. }),
            _ => matches!(outcome, Outcome::Completed { .. }),
        };
        assert!(is_right, "order {number}: {outcome:?}");
    }

    let (at_orders, at_payments) = (effects(&orders).await, effects(&payments).await);
    let count = |effect: &str| at_payments.keys().filter(|(name, _)| name == effect).count();
    let heavy = placed.iter().filter(|(number, _)| number % HEAVY == 0).count();
    assert_eq!((at_orders.len(), count("charged"), count("refunded")), (placed.len(), placed.len(), heavy));
    for (effect, times) in at_orders.into_iter().chain(at_payments) {
        assert_eq!(times, 1, "{effect:?}");
    }

    // What the orders asked for and what the payments answered. Shipping answers in the same topic, with this transport's headers.
    for (store, kinds) in [(&orders, vec!["command", "event", "undo"]), (&payments, vec!["reply"])] {
        let rows = outbox::rows(store.pool()).await;
        let mut seen: Vec<&str> = rows.iter().map(|row| &*row.kind).filter(|kind| *kind != "report").collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, kinds);
        let records = records::with_all(&place.brokers(), &rows).await;
        records::assert_are_of(&records, &rows);
        records::assert_keep_order(&records);
    }
    shop.close().await;
}

/// G2: what the connector sends twice takes effect once. G9: the first records of a key keep its order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g4_a_killed_connector_loses_no_message() {
    within(Box::pin(run())).await;
}
