use std::sync::Arc;

use anyhow::Context as _;
use saga_servers::{FaultProxy, PostgresServer, psql, shared};
use tokio::sync::Mutex;

use super::{Broker, Carrier, SmallDisk, Transport};
use crate::plan::Role;

/// The servers, and a proxy in front of PostgreSQL and RabbitMQ.
#[derive(Debug)]
pub(crate) struct Servers {
    pub(crate) postgres_proxy: FaultProxy,
    pub(crate) carrier: Carrier,
    databases: Vec<Database>,
    pub(crate) own: Option<Own>,
    _lent: Vec<Lent>,
}

/// Servers of this run alone, which can be killed.
#[derive(Debug, Clone)]
pub(crate) struct Own {
    /// The file system of the services' tables, or why there is none. It goes before the server does.
    pub(crate) disk: Arc<anyhow::Result<SmallDisk>>,
    pub(crate) postgres: Arc<Mutex<PostgresServer>>,
    pub(crate) broker: Arc<Mutex<Broker>>,
}

/// What was made on servers that others use too; it is removed with this value.
#[derive(Debug)]
#[expect(dead_code, reason = "they are kept to be dropped")]
enum Lent {
    Database(shared::Database),
    Vhost(shared::Vhost),
}

/// A service's database.
#[derive(Debug, Clone)]
pub(crate) struct Database {
    pub(crate) role: Role,
    /// Its own address.
    pub(crate) url: String,
    /// Its address behind the proxy.
    pub(crate) proxied: String,
}

impl Servers {
    /// Servers of their own.
    pub(crate) async fn start(transport: Transport) -> anyhow::Result<Self> {
        let (postgres, broker) = tokio::try_join!(PostgresServer::start(), Broker::start(transport))?;
        let disk = SmallDisk::mount(postgres.folder(), postgres.data_folder());
        let place = match &disk {
            Ok(disk) => {
                let made = format!("CREATE TABLESPACE small LOCATION '{}'", disk.folder().display());
                psql(&postgres.url(), &made).await?;
                "small"
            }
            Err(_) => "pg_default",
        };
        let mut urls = Vec::new();
        for role in Role::ALL {
            psql(&postgres.url(), &format!("CREATE DATABASE {} TABLESPACE {place}", role.name())).await?;
            urls.push((role, postgres.url_of(role.name())));
        }
        let carrier = broker.carrier().await?;
        let disk = Arc::new(disk);
        let own = Own { disk, postgres: Arc::new(Mutex::new(postgres)), broker: Arc::new(Mutex::new(broker)) };
        Self::behind_a_proxy(urls, carrier, Some(own), Vec::new()).await
    }

    /// Databases and a virtual host on the servers that the tests of a run share; those cannot be killed.
    pub(crate) async fn shared() -> anyhow::Result<Self> {
        let mut urls = Vec::new();
        let mut lent = Vec::new();
        for role in Role::ALL {
            let database = shared::database(&format!("chaos_{}", role.name())).await?;
            urls.push((role, database.url().to_owned()));
            lent.push(Lent::Database(database));
        }
        let vhost = shared::vhost("chaos").await?;
        let (broker_url, management, name) =
            (vhost.url().to_owned(), vhost.management().clone(), vhost.name().to_owned());
        lent.push(Lent::Vhost(vhost));
        let carrier = Carrier::of_rabbitmq(broker_url, management, name).await?;
        Self::behind_a_proxy(urls, carrier, None, lent).await
    }

    async fn behind_a_proxy(
        urls: Vec<(Role, String)>,
        carrier: Carrier,
        own: Option<Own>,
        lent: Vec<Lent>,
    ) -> anyhow::Result<Self> {
        let (_, first) = urls.first().context("there are databases")?;
        let postgres_proxy = FaultProxy::start(first).await?;
        let proxied = |url: &str| {
            let (server, _) = postgres_proxy.url().rsplit_once('/')?;
            let (_, database) = url.rsplit_once('/')?;
            Some(format!("{server}/{database}"))
        };
        let mut databases = Vec::new();
        for (role, url) in urls {
            let proxied = proxied(&url).context("an address of a database has a path")?;
            databases.push(Database { role, url, proxied });
        }
        Ok(Self { postgres_proxy, carrier, databases, own, _lent: lent })
    }

    /// The databases, the one of the orders first.
    pub(crate) fn databases(&self) -> &[Database] {
        &self.databases
    }

    /// The database of that service.
    pub(crate) fn database(&self, role: Role) -> &Database {
        &self.databases[role as usize]
    }
}
