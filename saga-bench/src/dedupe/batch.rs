//! What it costs to find out which of 256 received messages are known: in Redis, and by the statement that inserts their ids.

use anyhow::Result;
use redis::aio::MultiplexedConnection;
use saga_postgres::sqlx::{self, Connection as _, PgConnection};
use uuid::Uuid;

use super::lookups::micros_each;
use crate::clock::Stopwatch;
use crate::figures::Figures;

const BATCH: usize = 256;

const CREATE: &str =
    "CREATE TABLE IF NOT EXISTS received_by_hand (id uuid PRIMARY KEY, received_at timestamptz NOT NULL)";
const CLAIM: &str = "INSERT INTO received_by_hand (id, received_at) SELECT id, clock_timestamp() FROM unnest($1::uuid[]) id \
     ON CONFLICT (id) DO NOTHING RETURNING id";

/// The costs of one batch, in microseconds.
#[derive(Debug)]
pub(super) struct Batches {
    pub(super) redis: Figures,
    /// All are new.
    pub(super) claim: Figures,
    /// Half as many, as if Redis had known the other half.
    pub(super) claim_of_half: Figures,
}

impl Batches {
    pub(super) fn new() -> Self {
        let of = |name: &str| Figures::of_microseconds(name);
        Self {
            redis: of("256 ids looked up in Redis"),
            claim: of("256 ids claimed by one statement"),
            claim_of_half: of("128 ids claimed by one statement"),
        }
    }

    pub(super) fn all(&self) -> [&Figures; 3] {
        [&self.redis, &self.claim, &self.claim_of_half]
    }

    /// The share of duplicates from which on Redis saves more than it costs. Above 1 there is none.
    pub(super) fn break_even(&self) -> f64 {
        let saved_by_half = self.claim.median() - self.claim_of_half.median();
        self.redis.median() / (2.0 * saved_by_half)
    }

    pub(super) async fn measure(
        &mut self,
        redis: &mut MultiplexedConnection,
        database: &str,
        batches: u32,
    ) -> Result<()> {
        let mut conn = PgConnection::connect(database).await?;
        sqlx::raw_sql(CREATE).execute(&mut conn).await?;
        let ids = || -> Vec<Uuid> { (0..BATCH).map(|_| Uuid::new_v4()).collect() };
        let watch = Stopwatch::started();
        for _ in 0..batches {
            let keys: Vec<String> = ids().iter().map(|id| format!("received:{id}")).collect();
            let _: Vec<Option<Vec<u8>>> = redis::cmd("MGET").arg(&keys).query_async(redis).await?;
        }
        self.redis.values.push(micros_each(&watch, &(0..batches)));
        for (figures, count) in [(&mut self.claim, BATCH), (&mut self.claim_of_half, BATCH / 2)] {
            // One transaction around all: the commit is there with Redis or without.
            let mut tx = conn.begin().await?;
            let watch = Stopwatch::started();
            for _ in 0..batches {
                let mut ids = ids();
                ids.truncate(count);
                let claimed: Vec<Uuid> = sqlx::query_scalar(CLAIM).bind(ids).fetch_all(&mut *tx).await?;
                anyhow::ensure!(claimed.len() == count, "an id was known");
            }
            figures.values.push(micros_each(&watch, &(0..batches)));
            tx.rollback().await?;
        }
        Ok(())
    }
}
