use anyhow::Context as _;
use saga_postgres::PostgresStore;
use sqlx::{Connection as _, Executor as _, PgConnection};

/// Makes the tables of a store, and beside them a journal that the database itself keeps of what is purged.
///
/// # Errors
///
/// When the database refuses.
pub(crate) async fn prepare_purges(url: &str) -> anyhow::Result<()> {
    drop(PostgresStore::connect(url).await.context("cannot make the tables of a store")?);
    let mut conn = PgConnection::connect(url).await?;
    conn.execute(sqlx::raw_sql(include_str!("purges.sql")))
        .await
        .context("cannot make the journal of what is purged")?;
    Ok(conn.close().await?)
}

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
