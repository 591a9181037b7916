//! Who is alive.

use std::time::Duration;

use async_trait::async_trait;
use saga_core::store::{Incarnation, MemberId, Members, StoreError};
use sqlx::Row as _;

use crate::clock::micros;
use crate::error::store_error;
use crate::store::PostgresStore;

#[async_trait]
impl Members for PostgresStore {
    async fn join(&self, ttl: Duration) -> Result<Incarnation, StoreError> {
        let ttl = micros(ttl);
        // The dead need no row: a lease of somebody who has none is free.
        let sql = self.sql(
            "WITH buried AS (DELETE FROM {schema}.members WHERE alive_until <= clock_timestamp()), \
             joined AS (INSERT INTO {schema}.members (alive_until) \
                 VALUES (clock_timestamp() + $1 * interval '1 microsecond') RETURNING id) \
             SELECT j.id, (SELECT count(*) FROM {schema}.members WHERE alive_until > clock_timestamp()) FROM joined j",
        );
        self.in_transaction("join", move |conn| {
            Box::pin(async move {
                let row = sqlx::query(sql)
                    .bind(ttl)
                    .persistent(false)
                    .fetch_one(conn)
                    .await
                    .map_err(|e| store_error("join", e))?;
                let read = || Ok::<_, sqlx::Error>((row.try_get(0)?, row.try_get::<i64, _>(1)?));
                let (id, others) = read().map_err(|error| store_error("join", error))?;
                Ok(Incarnation { member: MemberId(id), others: u32::try_from(others).unwrap_or(u32::MAX) })
            })
        })
        .await
    }

    async fn beat(&self, member: MemberId, ttl: Duration) -> Result<bool, StoreError> {
        let sql = "UPDATE {schema}.members SET alive_until = clock_timestamp() + $2 * interval '1 microsecond' \
             WHERE id = $1 AND alive_until > clock_timestamp()";
        let query = sqlx::query(self.sql(sql)).bind(member.0).bind(micros(ttl));
        Ok(self.execute("beat", query).await? == 1)
    }

    async fn leave(&self, member: MemberId) -> Result<(), StoreError> {
        let query = sqlx::query(self.sql("DELETE FROM {schema}.members WHERE id = $1")).bind(member.0);
        self.execute("leave", query).await.map(drop)
    }
}
