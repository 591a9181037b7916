//! The contenders: the saga within one service, and over two.

use std::time::Duration;

use anyhow::Result;
use saga_amqp::AmqpTransport;
use saga_core::{Runtime, Saga};
use saga_postgres::PostgresStore;

use super::host::Host;
use super::work::{self, OWN_TABLES, Order, PAYMENTS, assert_rows, charge_card, confirm_order, order, reserve_stock};
use crate::drive::drive;

/// All three steps in one service.
pub(super) async fn run_local(url: &str, sagas: u32, in_flight: u32) -> Result<Duration> {
    work::create(url, &OWN_TABLES).await?;
    work::create(url, &[PAYMENTS]).await?;
    let saga: Saga<PostgresStore, Order> = Saga::named("create-order")
        .input::<Order>()
        .step::<reserve_stock>()
        .step::<charge_card>()
        .step::<confirm_order>()
        .build()?;
    let runtime = Runtime::builder(PostgresStore::connect(url).await?).saga(&saga).start().await?;
    let took = drive(&runtime, &saga, sagas, in_flight, order).await?;
    runtime.shutdown().await;
    assert_rows(url, &OWN_TABLES, sagas).await?;
    assert_rows(url, &[PAYMENTS], sagas).await?;
    Ok(took)
}

/// The second step in a service of its own, which has a database of its own.
pub(super) async fn run_remote(
    orders: &str,
    payments: &str,
    broker: &str,
    sagas: u32,
    in_flight: u32,
) -> Result<Duration> {
    work::create(orders, &OWN_TABLES).await?;
    work::create(payments, &[PAYMENTS]).await?;
    let saga: Saga<PostgresStore, Order> = Saga::named("create-order")
        .input::<Order>()
        .step::<reserve_stock>()
        .step::<work::contracts::charge_card>()
        .step::<confirm_order>()
        .build()?;
    let host = Host::start(payments, broker).await?;
    let builder = Runtime::builder(PostgresStore::connect(orders).await?)
        .transport(AmqpTransport::connect(broker).await?)
        .settings(|settings| settings.service = Some("orders".to_owned()));
    let runtime = builder.saga(&saga).start().await?;
    let took = drive(&runtime, &saga, sagas, in_flight, order).await?;
    runtime.shutdown().await;
    host.stop().await?;
    assert_rows(orders, &OWN_TABLES, sagas).await?;
    assert_rows(payments, &[PAYMENTS], sagas).await?;
    Ok(took)
}
