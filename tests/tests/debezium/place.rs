//! A PostgreSQL server, a broker of Kafka's protocol, and what the page needs of both.

use std::time::Duration;

use saga_kafka::{KafkaOptions, KafkaTransport};
use saga_postgres::{PostgresOptions, PostgresStore, Relay};
use saga_servers::{KafkaConnect, PostgresServer, TansuServer};
use serde_json::Value;
use sqlx::Executor as _;
use tempfile::TempDir;

use crate::{outbox, page};

const PASSWORD: &str = "of the connector";

pub(crate) struct Place {
    postgres: PostgresServer,
    tansu: TansuServer,
    /// Has the file with the password.
    secrets: TempDir,
}

impl Place {
    pub(crate) async fn new() -> Self {
        let postgres = PostgresServer::start_with(&[("wal_level", "logical")]).await.unwrap();
        let place = Self { postgres, tansu: TansuServer::start().await.unwrap(), secrets: TempDir::new().unwrap() };
        std::fs::write(place.secrets.path().join("secrets"), format!("password={PASSWORD}\n")).unwrap();
        for statement in page::statements(PASSWORD).0 {
            saga_servers::psql(&place.postgres.url(), &statement).await.unwrap();
        }
        place
    }

    /// A store that leaves its messages to a connector, in a database of its own.
    pub(crate) async fn store(&self, database: &str) -> PostgresStore {
        let url = self.postgres.create_database(database).await.unwrap();
        let options = PostgresOptions::from_url(&url).unwrap().relay(Relay::Cdc);
        let store = PostgresStore::connect_with(options).await.unwrap();
        for statement in page::statements(PASSWORD).1 {
            store.pool().execute(sqlx::raw_sql(sqlx::AssertSqlSafe(statement))).await.unwrap();
        }
        outbox::copy_rows(store.pool()).await;
        store
    }

    /// The page's connector for the database.
    pub(crate) fn connector(&self, database: &str) -> Value {
        page::connector(self.postgres.port(), database, &self.secrets.path().join("secrets"))
    }

    /// Starts a worker with these connectors. Each has its replication slot then.
    pub(crate) async fn connect(&self, connectors: &[Value]) -> KafkaConnect {
        KafkaConnect::start(&self.tansu.brokers(), connectors).await.unwrap()
    }

    pub(crate) fn brokers(&self) -> String {
        self.tansu.brokers()
    }

    /// As few partitions as let a consumer group begin soon.
    pub(crate) async fn transport(&self) -> KafkaTransport {
        let options = KafkaOptions::new(self.brokers()).debezium().partitions(4);
        KafkaTransport::connect_with(options.session_timeout(Duration::from_secs(6))).await.unwrap()
    }
}
