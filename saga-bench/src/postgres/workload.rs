//! The work that every contender does, and the count of what it left behind.

use anyhow::{Result, ensure};
use saga_servers::psql;

/// The steps of one saga.
pub(crate) const STEPS_PER_SAGA: u32 = 3;

/// The tables of the business: one a step. A row's key is random, as identifiers in such tables are.
pub(crate) const BUSINESS_TABLES: [&str; 3] = ["reservations", "payments", "confirmations"];

/// Makes the business tables.
pub(crate) async fn create_business(url: &str) -> Result<()> {
    for table in BUSINESS_TABLES {
        let columns = "id uuid PRIMARY KEY DEFAULT gen_random_uuid(), order_id bigint NOT NULL, amount bigint NOT NULL";
        psql(url, &format!("CREATE TABLE {table} ({columns})")).await?;
    }
    Ok(())
}

/// Counts what sagas left: every step of every saga exactly once.
pub(crate) async fn assert_business_rows(url: &str, sagas: u32) -> Result<()> {
    for table in BUSINESS_TABLES {
        let counted = psql(url, &format!("SELECT count(*) || ' ' || count(DISTINCT order_id) FROM {table}")).await?;
        ensure!(
            counted.trim() == format!("{sagas} {sagas}"),
            "{table} has {counted} rows and orders for {sagas} sagas"
        );
    }
    Ok(())
}
