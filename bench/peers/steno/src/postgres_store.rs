//! The log of sagas in PostgreSQL: a row for each saga, and one for each event.

use std::time::Duration;

use anyhow::{Context as _, Result};
use async_trait::async_trait;
use newtype_uuid::GenericUuid as _;
use peer_harness::Job;
use sqlx::postgres::{PgPool, PgPoolOptions};
use sqlx::types::Json;
use steno::{SagaCachedState, SagaCreateParams, SagaId, SagaNodeEvent, SecStore};

/// How long a write waits before it is tried again: steno gives a store no way to say that it failed.
const RETRY_DELAY: Duration = Duration::from_millis(100);

const TABLES: [&str; 2] = [
    "CREATE TABLE saga (id uuid PRIMARY KEY, name text NOT NULL, dag jsonb NOT NULL, state text NOT NULL)",
    // What recovery reads. An event that is recorded twice, after a write whose answer was lost, is one event.
    "CREATE TABLE saga_event (saga_id uuid NOT NULL, node_id bigint NOT NULL, event text NOT NULL, \
     data jsonb NOT NULL, PRIMARY KEY (saga_id, node_id, event))",
];

const INSERT_SAGA: &str = "INSERT INTO saga (id, name, dag, state) VALUES ($1, $2, $3, $4)";
const INSERT_EVENT: &str =
    "INSERT INTO saga_event (saga_id, node_id, event, data) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";
const UPDATE_SAGA: &str = "UPDATE saga SET state = $2 WHERE id = $1";

/// Writes each event in a commit of its own, and returns when it is durable.
#[derive(Debug)]
pub(crate) struct PostgresStore {
    pool: PgPool,
}

impl PostgresStore {
    /// Makes the tables.
    pub(crate) async fn create(job: &Job) -> Result<Self> {
        let options = PgPoolOptions::new().max_connections(job.in_flight).min_connections(job.in_flight);
        let pool = options.connect(&job.url).await.context("cannot connect to the database")?;
        for table in TABLES {
            sqlx::query(table).execute(&pool).await.context("cannot make the tables of the store")?;
        }
        Ok(Self { pool })
    }

    async fn insert_event(&self, event: &SagaNodeEvent) -> Result<(), sqlx::Error> {
        let node = i64::from(u32::from(event.node_id));
        let query = sqlx::query(INSERT_EVENT).bind(event.saga_id.into_untyped_uuid()).bind(node);
        query.bind(event.event_type.label()).bind(Json(&event.event_type)).execute(&self.pool).await.map(|_| ())
    }

    async fn update_saga(&self, id: SagaId, state: SagaCachedState) -> Result<(), sqlx::Error> {
        sqlx::query(UPDATE_SAGA)
            .bind(id.into_untyped_uuid())
            .bind(state.to_string())
            .execute(&self.pool)
            .await
            .map(|_| ())
    }
}

#[async_trait]
impl SecStore for PostgresStore {
    async fn saga_create(&self, params: SagaCreateParams) -> Result<()> {
        let query = sqlx::query(INSERT_SAGA).bind(params.id.into_untyped_uuid()).bind(params.name.to_string());
        query.bind(Json(&params.dag)).bind(params.state.to_string()).execute(&self.pool).await?;
        Ok(())
    }

    async fn record_event(&self, event: SagaNodeEvent) {
        while let Err(error) = self.insert_event(&event).await {
            pause(&error).await;
        }
    }

    async fn saga_update(&self, id: SagaId, state: SagaCachedState) {
        while let Err(error) = self.update_saga(id, state).await {
            pause(&error).await;
        }
    }
}

/// Between two attempts to write.
async fn pause(error: &sqlx::Error) {
    eprintln!("the store tries again: {error}");
    tokio::time::sleep(RETRY_DELAY).await;
}
