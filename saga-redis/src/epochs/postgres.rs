//! Epochs in the database of a PostgreSQL store.

use std::error::Error;

use async_trait::async_trait;
use saga_core::store::StoreError;
use saga_postgres::PostgresStore;
use saga_postgres::sqlx::{self, PgConnection};

use super::contract::Epochs;

/// Two transactions that create a table at once may fail, so they take turns.
const CREATE: &str = "SELECT pg_advisory_xact_lock(4127730995014718);
     CREATE TABLE IF NOT EXISTS saga_redis_epochs (slot integer PRIMARY KEY, epoch bigint NOT NULL)";
const RAISE: &str = "INSERT INTO saga_redis_epochs AS e (slot, epoch) VALUES ($1, $2 + 1) \
     ON CONFLICT (slot) DO UPDATE SET epoch = greatest(e.epoch, $2) + 1 RETURNING epoch";
const CURRENT: &str = "SELECT epoch FROM saga_redis_epochs WHERE slot = $1";

#[async_trait]
impl Epochs for PostgresStore {
    async fn raise(&self, slot: u16, above: u64) -> Result<u64, Box<dyn Error + Send + Sync>> {
        let above = i64::try_from(above)?;
        let raise = async |conn: &mut PgConnection| -> Result<i64, Failure> {
            sqlx::raw_sql(CREATE).execute(&mut *conn).await?;
            Ok(sqlx::query_scalar(RAISE).bind(i32::from(slot)).bind(above).fetch_one(conn).await?)
        };
        let epoch = self.write(raise).await.map_err(|failure| failure.0)?;
        Ok(u64::try_from(epoch)?)
    }

    async fn current(&self, slot: u16) -> Result<u64, Box<dyn Error + Send + Sync>> {
        let read = async |conn: &mut PgConnection| -> Result<Option<i64>, Failure> {
            sqlx::raw_sql(CREATE).execute(&mut *conn).await?;
            Ok(sqlx::query_scalar(CURRENT).bind(i32::from(slot)).fetch_optional(conn).await?)
        };
        let epoch = self.write(read).await.map_err(|failure| failure.0)?;
        Ok(u64::try_from(epoch.unwrap_or_default())?)
    }
}

struct Failure(Box<dyn Error + Send + Sync>);

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self(error.into())
    }
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        Self(error.into())
    }
}
