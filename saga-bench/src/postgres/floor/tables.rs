//! The tables that hand-written code would have, and the count of what it left in them.

use anyhow::{Result, ensure};
use saga_servers::psql;

use crate::postgres::work::Work;

const TABLES: &str = "
    CREATE TABLE floor_keys (key uuid, step text, output text NOT NULL, PRIMARY KEY (key, step));
    CREATE TABLE floor_sagas (id bigint PRIMARY KEY, position bigint NOT NULL, advanced_at timestamptz)
        WITH (fillfactor = 70);
    CREATE TABLE floor_outbox (seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, saga bigint, payload text);
";

/// Makes the tables, with so many sagas that have begun: unlike the runtime, a floor need not start them.
pub(crate) async fn create(url: &str, sagas: u32) -> Result<()> {
    psql(url, TABLES).await?;
    psql(url, &format!("INSERT INTO floor_sagas SELECT id, 0 FROM generate_series(0, {sagas}) id")).await?;
    psql(url, "VACUUM ANALYZE floor_sagas").await?;
    Ok(())
}

/// Every step left one row of each kind.
pub(crate) async fn verify(url: &str, work: Work, steps: u32) -> Result<()> {
    let business = match work {
        Work::Hot => "(SELECT sum(amount)::bigint FROM hot)",
        _ => {
            "(SELECT count(*) FROM reservations) + (SELECT count(*) FROM payments) + (SELECT count(*) FROM confirmations)"
        }
    };
    let counts = format!(
        "SELECT {business}, (SELECT count(*) FROM floor_keys), (SELECT count(*) FROM floor_outbox), \
         (SELECT sum(position)::bigint FROM floor_sagas)"
    );
    let counted = psql(url, &counts).await?;
    let expected = [steps.to_string(), steps.to_string(), steps.to_string(), steps.to_string()].join("|");
    ensure!(counted.trim() == expected, "the floor left {counted} rows, not {expected}");
    Ok(())
}
