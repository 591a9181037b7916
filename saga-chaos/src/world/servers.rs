use std::sync::Arc;

use anyhow::Context as _;
use saga_servers::{FaultProxy, Management, PostgresServer, RabbitMqServer, psql, shared};
use tokio::sync::Mutex;

use super::SmallDisk;
use crate::plan::Role;

/// The servers, and a proxy in front of each.
#[derive(Debug)]
pub(crate) struct Servers {
    pub(crate) postgres_proxy: FaultProxy,
    pub(crate) broker_proxy: FaultProxy,
    pub(crate) management: Management,
    /// The virtual host, as it stands in paths of the management interface.
    pub(crate) vhost: String,
    /// The broker's own address.
    pub(crate) broker_url: String,
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
    pub(crate) broker: Arc<Mutex<RabbitMqServer>>,
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
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let (postgres, broker) = tokio::try_join!(PostgresServer::start(), RabbitMqServer::start())?;
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
        let (broker_url, management) = (broker.url(), broker.management()?);
        let disk = Arc::new(disk);
        let own = Own { disk, postgres: Arc::new(Mutex::new(postgres)), broker: Arc::new(Mutex::new(broker)) };
        Self::behind_proxies(urls, broker_url, management, "%2F".to_owned(), Some(own), Vec::new()).await
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
        Self::behind_proxies(urls, broker_url, management, name, None, lent).await
    }

    async fn behind_proxies(
        urls: Vec<(Role, String)>,
        broker_url: String,
        management: Management,
        vhost: String,
        own: Option<Own>,
        lent: Vec<Lent>,
    ) -> anyhow::Result<Self> {
        let (_, first) = urls.first().context("there are databases")?;
        let postgres_proxy = FaultProxy::start(first).await?;
        let broker_proxy = FaultProxy::start(&broker_url).await?;
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
        Ok(Self { postgres_proxy, broker_proxy, management, vhost, broker_url, databases, own, _lent: lent })
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
