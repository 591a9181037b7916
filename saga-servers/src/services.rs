//! All the servers that the tests of a run share.

use std::env;
use std::path::Path;

use crate::error::Error;
use crate::folder::Folder;
use crate::pgbouncer::PgBouncer;
use crate::postgres::PostgresServer;
use crate::rabbitmq::rabbitmq::RabbitMqServer;
use crate::running::RunningProcess;
use crate::shared::{AMQP_MANAGEMENT_URL, AMQP_URL, PGBOUNCER_URL, POSTGRES_URL};

/// The addresses of the shared servers, as far as they are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Addresses {
    /// PostgreSQL, as a superuser.
    pub postgres: Option<String>,
    /// PgBouncer in transaction mode before it.
    pub pgbouncer: Option<String>,
    /// RabbitMQ.
    pub amqp: Option<String>,
    /// Its management interface.
    pub amqp_management: Option<String>,
}

impl Addresses {
    /// Those that are in the environment.
    ///
    /// # Errors
    /// RabbitMQ's address is given without its management interface's, or the other way round: they belong together.
    pub fn from_environment() -> Result<Self, Error> {
        let given = |name| env::var(name).ok().filter(|address| !address.is_empty());
        let (amqp, amqp_management) = (given(AMQP_URL), given(AMQP_MANAGEMENT_URL));
        match (&amqp, &amqp_management) {
            (Some(_), None) => Err(Error::NotGiven { variable: AMQP_MANAGEMENT_URL }),
            (None, Some(_)) => Err(Error::NotGiven { variable: AMQP_URL }),
            _ => Ok(Self { postgres: given(POSTGRES_URL), pgbouncer: given(PGBOUNCER_URL), amqp, amqp_management }),
        }
    }

    /// The variables of the environment with their values.
    pub fn variables(&self) -> Vec<(&'static str, &str)> {
        let all = [
            (POSTGRES_URL, &self.postgres),
            (AMQP_URL, &self.amqp),
            (AMQP_MANAGEMENT_URL, &self.amqp_management),
            (PGBOUNCER_URL, &self.pgbouncer),
        ];
        all.into_iter().filter_map(|(name, address)| Some((name, address.as_deref()?))).collect()
    }
}

/// The servers that were started because their addresses were not given. They end when this is dropped.
#[derive(Debug)]
pub struct Services {
    addresses: Addresses,
    // The order of the fields is the order in which they end.
    pgbouncer: Option<PgBouncer>,
    postgres: Option<PostgresServer>,
    rabbitmq: Option<RabbitMqServer>,
}

impl Services {
    /// Starts, side by side, those whose addresses are not `given`, each in a temporary folder of its own.
    ///
    /// # Errors
    /// A server is not installed or does not start.
    ///
    /// # Cancel safety
    /// Dropped, what was started ends.
    pub async fn start(given: Addresses) -> Result<Self, Error> {
        Self::start_at(given, None).await
    }

    /// Starts all in folders below `parent`, which stay.
    ///
    /// # Errors
    /// A server is not installed or does not start.
    ///
    /// # Cancel safety
    /// Dropped, what was started ends, and the folders stay.
    pub async fn start_in(parent: &Path) -> Result<Self, Error> {
        Self::start_at(Addresses::default(), Some(parent)).await
    }

    async fn start_at(mut addresses: Addresses, parent: Option<&Path>) -> Result<Self, Error> {
        let folder = |server: &str| match parent {
            Some(parent) => Folder::kept(parent, server),
            None => Folder::temporary(server),
        };
        let databases = async {
            let mut postgres = None;
            if addresses.postgres.is_none() {
                postgres = Some(PostgresServer::start_in(folder("postgres")?, &[]).await?);
            }
            let url = postgres.as_ref().map(PostgresServer::url).or_else(|| addresses.postgres.clone());
            let mut pgbouncer = None;
            if let (None, Some(url)) = (&addresses.pgbouncer, &url) {
                pgbouncer = Some(PgBouncer::start_in(folder("pgbouncer")?, url).await?);
            }
            Ok((postgres, pgbouncer))
        };
        let broker = async {
            match addresses.amqp {
                None => {
                    let broker = RabbitMqServer::start_in(folder("rabbitmq")?).await?;
                    // Each test deletes its virtual host when it ends.
                    broker.survive_deleted_queues().await?;
                    Ok(Some(broker))
                }
                Some(_) => Ok(None),
            }
        };
        let ((postgres, pgbouncer), rabbitmq) = tokio::try_join!(databases, broker)?;
        if let Some(postgres) = &postgres {
            addresses.postgres = Some(postgres.url());
        }
        if let Some(pgbouncer) = &pgbouncer {
            addresses.pgbouncer = Some(pgbouncer.url().to_owned());
        }
        if let Some(rabbitmq) = &rabbitmq {
            addresses.amqp = Some(rabbitmq.url());
            addresses.amqp_management = Some(rabbitmq.management_url());
        }
        Ok(Self { addresses, pgbouncer, postgres, rabbitmq })
    }

    /// Where they are, those that were given included.
    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// Lets all go on without an owner, and returns what must be ended later, in this order.
    pub fn leave_running(self) -> Vec<RunningProcess> {
        let pgbouncer = self.pgbouncer.and_then(PgBouncer::leave_running);
        let postgres = self.postgres.and_then(PostgresServer::leave_running);
        let rabbitmq = self.rabbitmq.map(RabbitMqServer::leave_running);
        pgbouncer.into_iter().chain(postgres).chain(rabbitmq.into_iter().flatten()).collect()
    }
}
