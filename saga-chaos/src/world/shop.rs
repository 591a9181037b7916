use anyhow::Context as _;
use sqlx::{Connection as _, Executor as _, PgConnection};

/// Makes the shop's tables, and beside them a journal that the database itself keeps: what was committed to them.
///
/// # Errors
///
/// When the database refuses.
pub(crate) async fn prepare_shop(url: &str) -> anyhow::Result<()> {
    let mut conn = PgConnection::connect(url).await.context("cannot open the database of the orders")?;
    order_rig::shop::migrate(&mut conn).await?;
    conn.execute(sqlx::raw_sql(include_str!("journal.sql"))).await.context("cannot make the journal")?;
    Ok(conn.close().await?)
}
