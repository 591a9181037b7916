use std::{path::PathBuf, time::Duration};

use anyhow::{anyhow, bail};
use saga_postgres::PostgresStore;
use sqlx::{Connection as _, PgConnection, postgres::PgConnectOptions};

use super::{Place, without_password};

/// How long a server may take to let this program in.
const CONNECT_WAIT: Duration = Duration::from_secs(10);

/// A database of a PostgreSQL server, which any number of processes work on at once.
#[derive(Clone)]
pub struct PostgresPlace {
    url: String,
    options: Box<PgConnectOptions>,
}

impl PostgresPlace {
    /// Reads the URL of a database.
    ///
    /// # Errors
    ///
    /// A sentence that says what such a URL looks like.
    pub fn parse(url: &str) -> anyhow::Result<Self> {
        // What cannot be read is not repeated, since nobody knows where the password is in it.
        let options: PgConnectOptions = url.parse().map_err(|_| {
            anyhow!("--store takes a URL such as postgres://user:password@host:port/database, and this is none")
        })?;
        Ok(Self { url: url.to_owned(), options: Box::new(options) })
    }

    fn database(&self) -> &str {
        self.options.get_database().unwrap_or_else(|| self.options.get_username())
    }

    /// Connects to a database in which this program has made a table.
    async fn look_for(&self, table: &'static str) -> anyhow::Result<PgConnection> {
        let mut conn = self.connect().await?;
        let made = sqlx::query_scalar("SELECT to_regclass($1) IS NOT NULL").bind(table);
        if made.fetch_one(&mut conn).await? {
            Ok(conn)
        } else {
            bail!("there is no shop in {}; `order-saga run` makes it", self.shown())
        }
    }

    async fn connect(&self) -> anyhow::Result<PgConnection> {
        let opened = tokio::time::timeout(CONNECT_WAIT, PgConnection::connect_with(&self.options)).await;
        let shown = self.shown();
        match opened {
            Ok(opened) => opened.map_err(|error| anyhow!("cannot open {shown}: {error}")),
            Err(_) => bail!("cannot open {shown}: it did not answer within {} seconds", CONNECT_WAIT.as_secs()),
        }
    }
}

/// Without the password.
impl std::fmt::Debug for PostgresPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("PostgresPlace").field(&self.shown()).finish()
    }
}

impl Place for PostgresPlace {
    type Store = PostgresStore;

    fn shown(&self) -> String {
        without_password(&self.url)
    }

    /// It stands in the folder that the program is started in.
    fn outside(&self) -> PathBuf {
        let plain = |letter: char| if letter.is_alphanumeric() || letter == '-' { letter } else { '_' };
        let name: String = self.database().chars().map(plain).collect();
        format!("order-saga-{name}.outside.db").into()
    }

    async fn open_store(&self) -> anyhow::Result<PostgresStore> {
        // The store says all of it in one sentence; what caused it would say it again.
        PostgresStore::connect(&self.url).await.map_err(|error| anyhow!("{error}"))
    }

    async fn look_at_store(&self) -> anyhow::Result<PostgresStore> {
        self.look_for("saga.sagas").await?.close().await?;
        PostgresStore::read_only(&self.url).await.map_err(|error| anyhow!("{error}"))
    }

    async fn open_shop(&self) -> anyhow::Result<PgConnection> {
        self.connect().await
    }

    async fn look_at_shop(&self) -> anyhow::Result<PgConnection> {
        self.look_for("shop_migrations").await
    }
}
