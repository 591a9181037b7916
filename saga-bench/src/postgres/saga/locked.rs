//! The order whose steps lock something of the order each, and the order that is under a semantic lock.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use saga_core::{Entity, Saga, SemanticLock, State, StepError, saga_step};
use saga_postgres::PostgresStore;
use sqlx::PgConnection;

use super::orders::{Order, charge_card, confirm_order, insert, reserve_stock};
use crate::clock::Stopwatch;

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
    let saga = Saga::named("held-order").input::<Order>();
    let saga = saga.semantic_lock::<Held, _>(|order: &Order| Entity::new("order", order.number));
    Ok(saga.step::<reserve_stock>().step::<charge_card>().step::<confirm_order>().build()?)
}

/// When the first step of each order began.
#[derive(Debug, Clone, Default)]
pub(super) struct Turns(Arc<Mutex<BTreeMap<i64, Stopwatch>>>);

impl Turns {
    /// A step that is rolled back begins again, and its first turn counts.
    fn begin(&self, order: &Order) {
        let mut begun = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        begun.entry(order.number).or_insert_with(Stopwatch::started);
    }

    pub(super) fn begun(&self) -> Vec<Stopwatch> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().copied().collect()
    }
}

#[saga_step(no_compensation, name = "reserve-stock")]
async fn reserve_in_turn(tx: &mut PgConnection, order: Order, State(turns): State<Turns>) -> Result<Order, StepError> {
    turns.begin(&order);
    insert(tx, "INSERT INTO reservations (order_id, amount) VALUES ($1, $2)", &order).await?;
    Ok(order)
}

/// One semantic lock for all sagas.
pub(super) fn handed_over() -> anyhow::Result<Saga<PostgresStore, Order>> {
    let saga = Saga::named("handed-over-order").input::<Order>();
    let saga = saga.semantic_lock::<Held, _>(|_: &Order| Entity::new("shop", 1));
    Ok(saga.step::<reserve_in_turn>().step::<charge_card>().step::<confirm_order>().build()?)
}
