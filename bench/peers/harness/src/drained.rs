//! The end of a queue's work, as its own tables tell it.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use sqlx::postgres::PgPoolOptions;

/// How long between two looks. It is short beside any run, and few looks are needed: the handlers are through.
const LOOK_EVERY: Duration = Duration::from_millis(2);

const PATIENCE: Duration = Duration::from_mins(1);

/// Waits until `count`, a query of one number, is 0: what the handlers of a queue have done is recorded as done.
///
/// # Errors
/// The database refuses, or something is left after a minute.
pub async fn wait_until_none(url: &str, count: &'static str) -> Result<()> {
    let pool = PgPoolOptions::new().max_connections(1).connect(url).await.context("cannot connect to the database")?;
    let looking = async {
        loop {
            let left: i64 =
                sqlx::query_scalar(count).fetch_one(&pool).await.context("cannot ask the queue's tables")?;
            if left == 0 {
                return Ok(());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    match tokio::time::timeout(PATIENCE, looking).await {
        Ok(looked) => looked,
        Err(_) => bail!("the queue has work left {} s after the last handler: {count}", PATIENCE.as_secs()),
    }
}
