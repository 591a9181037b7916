//! Epochs in the file of a SQLite store.

use std::error::Error;

use async_trait::async_trait;
use saga_core::store::StoreError;
use saga_sqlite::SqliteStore;
use saga_sqlite::rusqlite::{Connection, OptionalExtension as _};

use super::contract::Epochs;

const CREATE: &str = "CREATE TABLE IF NOT EXISTS saga_redis_epochs \
     (slot INTEGER NOT NULL PRIMARY KEY, epoch INTEGER NOT NULL) STRICT";
const RAISE: &str = "INSERT INTO saga_redis_epochs (slot, epoch) VALUES (?1, ?2 + 1) \
     ON CONFLICT (slot) DO UPDATE SET epoch = max(epoch, ?2) + 1 RETURNING epoch";
const CURRENT: &str = "SELECT epoch FROM saga_redis_epochs WHERE slot = ?1";

#[async_trait]
impl Epochs for SqliteStore {
    async fn raise(&self, slot: u16, above: u64) -> Result<u64, Box<dyn Error + Send + Sync>> {
        let raise = move |conn: &mut Connection| -> Result<i64, Failure> {
            conn.execute_batch(CREATE)?;
            Ok(conn.query_row(RAISE, (slot, i64::try_from(above)?), |row| row.get(0))?)
        };
        Ok(u64::try_from(self.write(raise).await.map_err(|failure| failure.0)?)?)
    }

    async fn current(&self, slot: u16) -> Result<u64, Box<dyn Error + Send + Sync>> {
        let read = move |conn: &mut Connection| -> Result<Option<i64>, Failure> {
            conn.execute_batch(CREATE)?;
            Ok(conn.query_row(CURRENT, [slot], |row| row.get(0)).optional()?)
        };
        Ok(u64::try_from(self.write(read).await.map_err(|failure| failure.0)?.unwrap_or_default())?)
    }
}

struct Failure(Box<dyn Error + Send + Sync>);

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self(error.into())
    }
}

impl From<saga_sqlite::rusqlite::Error> for Failure {
    fn from(error: saga_sqlite::rusqlite::Error) -> Self {
        Self(error.into())
    }
}

impl From<std::num::TryFromIntError> for Failure {
    fn from(error: std::num::TryFromIntError) -> Self {
        Self(error.into())
    }
}
