//! The steps, and the tables that they write to.

use anyhow::{Result, ensure};
use saga_core::{StepError, saga_step};
use saga_servers::psql;
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;

/// The steps of one saga.
pub(super) const STEPS_PER_SAGA: u32 = 3;
/// The tables of the orders' own steps.
pub(super) const OWN_TABLES: [&str; 2] = ["reservations", "confirmations"];
/// The table of the step that another service does, or not.
pub(super) const PAYMENTS: &str = "payments";

/// What is ordered.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    number: i64,
    amount: i64,
}

/// What the services know of each other.
pub(super) mod contracts {
    use saga_core::{StepError, saga_step};

    use super::Order;

    #[saga_step(service = "payments", no_compensation)]
    pub(crate) async fn charge_card(order: Order) -> Result<Order, StepError>;
}

#[saga_step(no_compensation)]
pub(super) async fn reserve_stock(tx: &mut PgConnection, order: Order) -> Result<Order, StepError> {
    insert(tx, "INSERT INTO reservations (order_id, amount) VALUES ($1, $2)", order).await
}

#[saga_step(no_compensation)]
pub(super) async fn charge_card(tx: &mut PgConnection, order: Order) -> Result<Order, StepError> {
    insert(tx, "INSERT INTO payments (order_id, amount) VALUES ($1, $2)", order).await
}

#[saga_step(no_compensation)]
pub(super) async fn confirm_order(tx: &mut PgConnection, order: Order) -> Result<Order, StepError> {
    insert(tx, "INSERT INTO confirmations (order_id, amount) VALUES ($1, $2)", order).await
}

/// The same charge, as the service `payments` does it for others.
pub(super) mod hosted {
    use saga_core::{StepError, saga_step};
    use sqlx::PgConnection;

    use super::{Order, contracts};

    #[saga_step(implements = contracts::charge_card, no_compensation)]
    pub(crate) async fn charge_card(tx: &mut PgConnection, order: Order) -> Result<Order, StepError> {
        super::insert(tx, "INSERT INTO payments (order_id, amount) VALUES ($1, $2)", order).await
    }
}

/// The order of that number.
pub(super) fn order(number: u32) -> Order {
    Order { number: i64::from(number), amount: 100 + i64::from(number % 10_000) }
}

/// Makes these tables in a database.
pub(super) async fn create(url: &str, tables: &[&str]) -> Result<()> {
    for table in tables {
        let columns = "id uuid PRIMARY KEY DEFAULT gen_random_uuid(), order_id bigint NOT NULL, amount bigint NOT NULL";
        psql(url, &format!("CREATE TABLE {table} ({columns})")).await?;
    }
    Ok(())
}

/// Counts what sagas left in these tables: every order exactly once.
pub(super) async fn assert_rows(url: &str, tables: &[&str], sagas: u32) -> Result<()> {
    for table in tables {
        let counted = psql(url, &format!("SELECT count(*) || ' ' || count(DISTINCT order_id) FROM {table}")).await?;
        ensure!(
            counted.trim() == format!("{sagas} {sagas}"),
            "{table} has {counted} rows and orders for {sagas} sagas"
        );
    }
    Ok(())
}

/// Does the business part of a step: its one write.
async fn insert(tx: &mut PgConnection, sql: &'static str, order: Order) -> Result<Order, StepError> {
    sqlx::query(sql).bind(order.number).bind(order.amount).execute(tx).await?;
    Ok(order)
}
