//! The order whose steps lock something of the order each, and the order that is under a semantic lock.

use saga_core::{Entity, Saga, SemanticLock, StepError, saga_step};
use saga_postgres::PostgresStore;
use sqlx::PgConnection;

use super::orders::{Order, charge_card, confirm_order, insert, reserve_stock};

#[saga_step(no_compensation, name = "reserve-stock", lock = |order| Entity::new("stock", order.number))]
async fn reserve_locked(tx: &mut PgConnection, order: Order) -> Result<Order, StepError> {
    insert(tx, "INSERT INTO reservations (order_id, amount) VALUES ($1, $2)", &order).await?;
    Ok(order)
}

#[saga_step(no_compensation, name = "charge-card", lock = |order| Entity::new("card", order.number))]
async fn charge_locked(tx: &mut PgConnection, order: Order) -> Result<Order, StepError> {
    insert(tx, "INSERT INTO payments (order_id, amount) VALUES ($1, $2)", &order).await?;
    Ok(order)
}

#[saga_step(no_compensation, name = "confirm-order", lock = |order| Entity::new("order", order.number))]
async fn confirm_locked(tx: &mut PgConnection, order: Order) -> Result<Order, StepError> {
    insert(tx, "INSERT INTO confirmations (order_id, amount) VALUES ($1, $2)", &order).await?;
    Ok(order)
}

/// A lock for each step.
pub(super) fn saga() -> anyhow::Result<Saga<PostgresStore, Order>> {
    let saga = Saga::named("locked-order").input::<Order>();
    Ok(saga.step::<reserve_locked>().step::<charge_locked>().step::<confirm_locked>().build()?)
}

struct Held;

impl SemanticLock for Held {
    const NAME: &'static str = "held";
}

/// One semantic lock for the saga.
pub(super) fn held() -> anyhow::Result<Saga<PostgresStore, Order>> {
    under_lock("held-order", |order| Entity::new("order", order.number))
}

/// One semantic lock for all sagas.
pub(super) fn handed_over() -> anyhow::Result<Saga<PostgresStore, Order>> {
    under_lock("handed-over-order", |_| Entity::new("shop", 1))
}

fn under_lock(
    name: &'static str,
    entity: impl Fn(&Order) -> Entity + Send + Sync + 'static,
) -> anyhow::Result<Saga<PostgresStore, Order>> {
    let saga = Saga::named(name).input::<Order>().semantic_lock::<Held, _>(entity);
    Ok(saga.step::<reserve_stock>().step::<charge_card>().step::<confirm_order>().build()?)
}
