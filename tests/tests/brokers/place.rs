use std::time::Duration;

use saga_amqp::{AmqpOptions, AmqpTransport};
use saga_core::{Runtime, Saga, Service, Settings, StepContext, StepError, saga_step};
use saga_postgres::PostgresStore;
use saga_servers::shared::{Database, Vhost, database, vhost};
use sqlx::PgConnection;

/// How often a message may come back to its queue.
pub(crate) const DELIVERY_LIMIT: u32 = 3;

mod contracts {
    use saga_core::{StepError, saga_step};

    #[saga_step(service = "payments", no_compensation)]
    pub(crate) async fn charge_card(cents: i64) -> Result<String, StepError>;
}

#[saga_step(implements = contracts::charge_card)]
pub(crate) async fn charge_card(tx: &mut PgConnection, ctx: &StepContext, cents: i64) -> Result<String, StepError> {
    let query = sqlx::query("INSERT INTO charges (key, cents) VALUES ($1, $2)");
    query.bind(ctx.key().to_owned()).bind(cents).execute(tx).await?;
    Ok(format!("payment of {cents}"))
}

pub(crate) fn create_order() -> Saga<PostgresStore, i64> {
    Saga::named("create-order").input::<i64>().step::<contracts::charge_card>().build().unwrap()
}

/// A virtual host, and a database for each of two services.
pub(crate) struct Place {
    pub(crate) orders: Database,
    pub(crate) payments: Database,
    pub(crate) vhost: Vhost,
}

impl Place {
    pub(crate) async fn new(purpose: &str) -> Self {
        let (orders, payments) = (database(purpose).await.unwrap(), database(purpose).await.unwrap());
        Self { orders, payments, vhost: vhost(purpose).await.unwrap() }
    }

    pub(crate) async fn transport(&self) -> AmqpTransport {
        transport(self.vhost.url()).await
    }

    /// The coordinator.
    pub(crate) async fn start_orders(&self) -> Runtime<PostgresStore> {
        orders(self.orders.url(), self.transport().await).await
    }

    /// The host of the payments.
    pub(crate) async fn start_payments(&self) -> Runtime<PostgresStore> {
        payments(self.payments.url(), self.transport().await).await
    }
}

pub(crate) async fn transport(url: &str) -> AmqpTransport {
    let options = AmqpOptions::new(url).delivery_limit(DELIVERY_LIMIT).reconnect_delay_max(Duration::from_secs(1));
    AmqpTransport::connect_with(options).await.unwrap()
}

pub(crate) async fn orders(database: &str, transport: AmqpTransport) -> Runtime<PostgresStore> {
    let store = PostgresStore::connect(database).await.unwrap();
    let change = |settings: &mut Settings| {
        settings.service = Some("orders".into());
        settings.publish_backoff_max = Duration::from_secs(1);
    };
    Runtime::builder(store).transport(transport).saga(&create_order()).settings(change).start().await.unwrap()
}

pub(crate) async fn payments(database: &str, transport: AmqpTransport) -> Runtime<PostgresStore> {
    let store = PostgresStore::connect(database).await.unwrap();
    let table = "CREATE TABLE IF NOT EXISTS charges (key text PRIMARY KEY, cents bigint NOT NULL)";
    sqlx::query(table).execute(store.pool()).await.unwrap();
    let service = Service::named("payments").host::<charge_card>().build().unwrap();
    let change = |settings: &mut Settings| settings.tenants = Some(vec![saga_core::Tenant::default()]);
    Runtime::builder(store).transport(transport).service(&service).settings(change).start().await.unwrap()
}

/// The keys that were charged, in their order.
pub(crate) async fn charges(payments: &Runtime<PostgresStore>) -> Vec<String> {
    let query = sqlx::query_scalar("SELECT key FROM charges ORDER BY key");
    query.fetch_all(payments.store().pool()).await.unwrap()
}
