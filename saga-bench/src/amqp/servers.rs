//! The servers that the contenders share, and the place that each of them gets there.

use anyhow::{Context as _, Result};
use saga_amqp::{AmqpOptions, AmqpTransport};
use saga_core::transport::Transport as _;
use saga_postgres::PostgresStore;
use saga_servers::{PostgresServer, RabbitMqServer};

use crate::messages::subscription;
use crate::postgres::server;

/// How many messages are unconfirmed at a time, for every contender.
pub(super) const CONFIRM_WINDOW: usize = 256;
/// What the names of exchanges and queues begin with.
const PREFIX: &str = "bench.";

/// A database server with durable commits, and a broker.
pub(super) struct Servers {
    postgres: PostgresServer,
    broker: RabbitMqServer,
}

/// A database and a virtual host of one contender's own, in one round.
pub(super) struct Place {
    pub(super) database_url: String,
    pub(super) broker_url: String,
}

impl Servers {
    pub(super) async fn start() -> Result<Self> {
        let postgres = server::start().await?;
        let broker = RabbitMqServer::start().await.context("the benchmark needs a RabbitMQ of its own")?;
        Ok(Self { postgres, broker })
    }

    /// A new place, in which a quorum queue takes what the contender sends.
    pub(super) async fn place(&self, name: &str) -> Result<Place> {
        let database_url = self.postgres.create_database(name).await?;
        let broker_url = self.broker.create_vhost(name).await?;
        let place = Place { database_url, broker_url };
        // The queue stays when the subscription ends.
        drop(place.transport().await?.subscribe(subscription(1)).await?);
        Ok(place)
    }
}

impl Place {
    pub(super) async fn store(&self) -> Result<PostgresStore> {
        Ok(PostgresStore::connect(&self.database_url).await?)
    }

    pub(super) async fn transport(&self) -> Result<AmqpTransport> {
        let options = AmqpOptions::new(&self.broker_url).prefix(PREFIX).confirm_window(CONFIRM_WINDOW);
        Ok(AmqpTransport::connect_with(options).await?)
    }

    /// The exchange to which events are published.
    pub(super) fn exchange() -> String {
        format!("{PREFIX}events")
    }
}
