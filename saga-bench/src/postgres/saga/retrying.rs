//! The order whose payment may fail each time that it is tried, after its write.

use saga_core::{Saga, StepError, saga_step};
use saga_postgres::PostgresStore;
use sqlx::PgConnection;

use super::orders::{Order, insert};
use crate::postgres::workload::is_failing;

#[saga_step(no_compensation, name = "reserve-stock")]
async fn reserve_first(tx: &mut PgConnection, order: Order) -> Result<Order, StepError> {
    insert(tx, "INSERT INTO reservations (order_id, amount) VALUES ($1, $2)", &order).await?;
    Ok(order)
}

#[saga_step(no_compensation, name = "charge-card", retry(attempts = 4_294_967_295), on_exhausted = "compensate")]
async fn charge_or_fail(tx: &mut PgConnection, order: Order) -> Result<Order, StepError> {
    insert(tx, "INSERT INTO payments (order_id, amount) VALUES ($1, $2)", &order).await?;
    if u32::try_from(order.number).is_ok_and(is_failing) {
        return Err(StepError::retry("the bank does not answer"));
    }
    Ok(order)
}

#[saga_step(no_compensation, name = "confirm-order")]
async fn confirm_last(tx: &mut PgConnection, order: Order) -> Result<Order, StepError> {
    insert(tx, "INSERT INTO confirmations (order_id, amount) VALUES ($1, $2)", &order).await?;
    Ok(order)
}

pub(super) fn saga() -> anyhow::Result<Saga<PostgresStore, Order>> {
    let saga = Saga::named("retry-order").input::<Order>();
    Ok(saga.step::<reserve_first>().step::<charge_or_fail>().step::<confirm_last>().build()?)
}
