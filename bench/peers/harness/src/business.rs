//! The rows that the steps write, and their count.

use anyhow::{Context as _, Result, ensure};
use sqlx::postgres::{PgPool, PgPoolOptions};
use sqlx::{Executor, Postgres};

use crate::job::Job;
use crate::work::{Order, Step};

/// Writes the rows of steps, each in a commit of its own, for peers that know nothing of the step's transaction.
#[derive(Debug, Clone)]
pub struct Business {
    pool: PgPool,
}

impl Business {
    /// Connects, with as many connections as steps may want to write at once.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn connect(job: &Job) -> Result<Self> {
        let options = PgPoolOptions::new().max_connections(job.in_flight).min_connections(job.in_flight);
        let pool = options.connect(&job.url).await.context("cannot connect to the database")?;
        Ok(Self { pool })
    }

    /// Writes the row of `step`.
    ///
    /// # Errors
    /// What the database says.
    pub async fn write(&self, step: Step, order: &Order) -> Result<(), sqlx::Error> {
        Self::write_with(&self.pool, step, order).await
    }

    /// Writes the row of `step` with an executor of the peer's, say its transaction.
    ///
    /// # Errors
    /// What the database says.
    pub async fn write_with<'e>(
        executor: impl Executor<'e, Database = Postgres>,
        step: Step,
        order: &Order,
    ) -> Result<(), sqlx::Error> {
        sqlx::query(step.insert()).bind(order.id).bind(order.amount).execute(executor).await.map(|_| ())
    }
}

/// Makes the tables.
pub(crate) async fn create_tables(url: &str) -> Result<()> {
    let pool = checking_pool(url).await?;
    for step in Step::ALL {
        let table = step.table();
        sqlx::query(step.create_table()).execute(&pool).await.with_context(|| format!("cannot make {table}"))?;
    }
    pool.close().await;
    Ok(())
}

/// Counts what the sagas left: every step of every saga exactly once, and nothing of a step that must not be done.
pub(crate) async fn check_rows(job: &Job) -> Result<()> {
    let pool = checking_pool(&job.url).await?;
    for step in Step::ALL {
        let (table, expected) = (step.table(), i64::from(job.rows_of(step)));
        let count = format!("SELECT count(*), count(DISTINCT order_id) FROM {table}");
        let (rows, orders): (i64, i64) = sqlx::query_as(sqlx::AssertSqlSafe(count)).fetch_one(&pool).await?;
        ensure!(
            (rows, orders) == (expected, expected),
            "{table} has {rows} rows of {orders} orders, and {expected} of each are right"
        );
    }
    pool.close().await;
    Ok(())
}

async fn checking_pool(url: &str) -> Result<PgPool> {
    PgPoolOptions::new().max_connections(1).connect(url).await.context("cannot connect to the database")
}
