use std::{io, path::PathBuf, time::Duration};

use anyhow::{Context as _, anyhow, bail};
use saga_cli::OpenStore;
use saga_core::store::{Archive, StoreError, StoreErrorKind};
use saga_postgres::{PostgresOptions, PostgresStore, TableArchive};
use sqlx::{Connection as _, PgConnection, postgres::PgConnectOptions};

use super::{Place, pooler_in, without_password};
use crate::archive::ArchivedSaga;

/// How long a server may take to let this program in.
const CONNECT_WAIT: Duration = Duration::from_secs(10);

/// A database of a PostgreSQL server, which any number of processes work on at once.
#[derive(Clone)]
pub struct PostgresPlace {
    url: String,
    options: Box<PgConnectOptions>,
    /// Whether it is reached through PgBouncer in transaction mode.
    pgbouncer: bool,
}

impl PostgresPlace {
    /// Reads the URL of a database.
    pub fn parse(url: &str) -> anyhow::Result<Self> {
        let (plain, pgbouncer) = pooler_in(url)?;
        // A URL that cannot be read is not repeated, since its password cannot be told from the rest. Without `//` all of it would be
        // the name of a database.
        let parsed = plain.contains("://").then(|| plain.parse().ok()).flatten();
        let mut options: PgConnectOptions = parsed.ok_or_else(|| {
            anyhow!("--store takes a URL such as postgres://user:password@host:port/database, and this is none")
        })?;
        if pgbouncer {
            options = options.statement_cache_capacity(0).extra_float_digits(None);
        }
        Ok(Self { url: url.to_owned(), options: Box::new(options), pgbouncer })
    }

    fn database(&self) -> &str {
        self.options.get_database().unwrap_or_else(|| self.options.get_username())
    }

    /// Connects to a database in which this program has made a table.
    async fn look_for(&self, table: &'static str) -> anyhow::Result<PgConnection> {
        let mut conn = self.connect().await?;
        let made = sqlx::query_scalar("SELECT to_regclass($1) IS NOT NULL").bind(table).persistent(!self.pgbouncer);
        if made.fetch_one(&mut conn).await? {
            Ok(conn)
        } else {
            bail!("there is no shop in {}; `order-rig run` makes it", self.name())
        }
    }

    async fn connect(&self) -> anyhow::Result<PgConnection> {
        let opened = tokio::time::timeout(CONNECT_WAIT, PgConnection::connect_with(&self.options)).await;
        let shown = self.name();
        let opened = opened.unwrap_or_else(|_| {
            let problem = format!("it did not answer within {} seconds", CONNECT_WAIT.as_secs());
            Err(sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, problem)))
        });
        opened.with_context(|| format!("cannot open {shown}"))
    }

    async fn connect_store(&self, options: PostgresOptions) -> anyhow::Result<PostgresStore> {
        let opened = PostgresStore::connect_with(options).await;
        // Of what can be said of a pooler, this program has a parameter.
        let is_of_pooler = |error: &StoreError| {
            error.kind() == StoreErrorKind::Misuse || error.detail().contains("unsupported startup parameter")
        };
        let is_pooler = !self.pgbouncer && opened.as_ref().is_err_and(is_of_pooler);
        let opened = opened.map_err(anyhow::Error::from);
        if is_pooler { opened.context("give the URL of --store the parameter ?pgbouncer=true") } else { opened }
    }

    fn store_options(&self) -> PostgresOptions {
        let options = PostgresOptions::new((*self.options).clone());
        if self.pgbouncer { options.pgbouncer() } else { options }
    }
}

/// Without the password.
impl std::fmt::Debug for PostgresPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("PostgresPlace").field(&self.name()).finish()
    }
}

impl OpenStore for PostgresPlace {
    type Store = PostgresStore;

    fn name(&self) -> String {
        without_password(&self.url)
    }

    async fn open(&self) -> anyhow::Result<PostgresStore> {
        self.connect_store(self.store_options()).await
    }

    async fn open_read_only(&self) -> anyhow::Result<PostgresStore> {
        self.look_for("saga.sagas").await?.close().await?;
        self.connect_store(self.store_options().read_only()).await
    }
}

impl Place for PostgresPlace {
    /// It stands in the folder that the program is started in.
    fn outside(&self) -> PathBuf {
        let plain = |letter: char| if letter.is_alphanumeric() || letter == '-' { letter } else { '_' };
        let name: String = self.database().chars().map(plain).collect();
        format!("order-rig-{name}.outside.db").into()
    }

    fn archive(&self, store: &PostgresStore) -> impl Archive {
        TableArchive::new(store)
    }

    async fn archived(&self) -> anyhow::Result<Vec<ArchivedSaga>> {
        let mut conn = self.connect().await?;
        let made = sqlx::query_scalar("SELECT to_regclass('saga.archived_sagas') IS NOT NULL");
        if !made.persistent(!self.pgbouncer).fetch_one(&mut conn).await? {
            return Ok(Vec::new());
        }
        let lines = sqlx::query_scalar("SELECT content::text FROM saga.archived_sagas ORDER BY id, revision");
        let lines: Vec<String> = lines.persistent(!self.pgbouncer).fetch_all(&mut conn).await?;
        lines.iter().map(|line| ArchivedSaga::parse(line)).collect()
    }

    async fn open_shop(&self) -> anyhow::Result<PgConnection> {
        self.connect().await
    }

    async fn open_shop_read_only(&self) -> anyhow::Result<PgConnection> {
        self.look_for("shop_migrations").await
    }
}
