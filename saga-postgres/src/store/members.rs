//! The members.

use std::time::Duration;

use async_trait::async_trait;
use saga_core::store::{Incarnation, MemberId, Members, StoreError};
use sqlx::{PgConnection, Row as _};

use crate::clock::micros;
use crate::error::store_error;
use crate::store::connection::Sql;
use crate::store::store::PostgresStore;

/// A dead member needs no row: a lease whose owner has no row is free.
const JOIN: &str = "WITH buried AS (DELETE FROM {schema}.members WHERE alive_until <= clock_timestamp()), \
     joined AS (INSERT INTO {schema}.members (alive_until) \
         VALUES (clock_timestamp() + $1 * interval '1 microsecond') RETURNING id) \
     SELECT j.id, (SELECT count(*) FROM {schema}.members WHERE alive_until > clock_timestamp()) FROM joined j";

#[async_trait]
impl Members for PostgresStore {
    async fn join(&self, ttl: Duration) -> Result<Incarnation, StoreError> {
        let sql = self.sql(JOIN);
        self.in_transaction("join", move |conn| Box::pin(join(conn, sql, "join", ttl))).await
    }

    async fn rejoin(&self, former: MemberId, ttl: Duration) -> Result<Incarnation, StoreError> {
        let sql = self.sql(JOIN);
        // Rows that a step's transaction holds are skipped: waiting for its end might take longer than this member
        // lives.
        let adopt = self.sql(
            "WITH buried AS (DELETE FROM {schema}.members WHERE id = $1), left_over AS MATERIALIZED ( \
                 SELECT w.id FROM {schema}.work w WHERE w.owner = $1 ORDER BY w.id FOR UPDATE SKIP LOCKED) \
             UPDATE {schema}.work w SET owner = $2 FROM left_over l WHERE w.id = l.id",
        );
        self.in_transaction("rejoin", move |conn| {
            Box::pin(async move {
                let joined = join(&mut *conn, sql, "rejoin", ttl).await?;
                let query = sqlx::query(adopt).bind(former.0).bind(joined.member.0).persistent(false);
                query.execute(conn).await.map_err(|error| store_error("rejoin", error))?;
                Ok(joined)
            })
        })
        .await
    }

    async fn heartbeat(&self, member: MemberId, ttl: Duration) -> Result<bool, StoreError> {
        let sql = "UPDATE {schema}.members SET alive_until = clock_timestamp() + $2 * interval '1 microsecond' \
             WHERE id = $1 AND alive_until > clock_timestamp()";
        let query = sqlx::query(self.sql(sql)).bind(member.0).bind(micros(ttl));
        Ok(self.execute("heartbeat", query).await? == 1)
    }

    async fn leave(&self, member: MemberId) -> Result<(), StoreError> {
        let query = sqlx::query(self.sql("DELETE FROM {schema}.members WHERE id = $1")).bind(member.0);
        self.execute("leave", query).await.map(drop)
    }
}

async fn join(
    conn: &mut PgConnection,
    sql: Sql,
    operation: &'static str,
    ttl: Duration,
) -> Result<Incarnation, StoreError> {
    let failed = |error| store_error(operation, error);
    let row = sqlx::query(sql).bind(micros(ttl)).persistent(false).fetch_one(conn).await.map_err(failed)?;
    let (id, others) = (row.try_get(0).map_err(failed)?, row.try_get::<i64, _>(1).map_err(failed)?);
    Ok(Incarnation { member: MemberId(id), others: u32::try_from(others).unwrap_or(u32::MAX) })
}
