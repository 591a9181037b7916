//! The booking service as a program: `travel`, then `curl -X POST localhost:8080/trips ..` as the README shows.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Parser, ValueEnum};
use saga_core::memory::MemoryTransport;
use saga_core::transport::Transport;
use saga_sql::SqlStore;
use saga_sqlite::SqliteStore;
use tokio::net::TcpListener;
use travel::app::{Providers, start_hotels, start_trips};
use travel::http::routes;

/// Books trips: flights, a hotel and a car, or nothing.
#[derive(Parser)]
#[command(version)]
struct Cli {
    /// Which services run in this process
    #[arg(value_enum, default_value_t = Serve::All)]
    serve: Serve,
    /// Where the trips are: a folder, or the postgres:// URL of a database if the program has the feature `postgres`
    #[arg(long, default_value = "travel-data")]
    store: String,
    /// The amqp:// URL of a RabbitMQ broker between the services, if the program has the feature `rabbitmq`
    #[arg(long)]
    broker: Option<String>,
    /// The address of the HTTP server
    #[arg(long, default_value = "127.0.0.1:8080")]
    listen: String,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Serve {
    /// Trips and hotels
    All,
    /// Trips only; another process serves the hotels
    Trips,
    /// Hotels only
    Hotels,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt().init();
    let cli = Cli::parse();
    // The one line for each database.
    match cli.store.as_str() {
        #[cfg(feature = "postgres")]
        url if url.starts_with("postgres") => with_broker(&cli, async |service| postgres(url, service).await).await,
        url if url.contains("://") => {
            anyhow::bail!("{url}: this program was built without the feature for this database")
        }
        folder => with_broker(&cli, async |service| sqlite(folder, service).await).await,
    }
}

/// Each service has a file of its own.
async fn sqlite(folder: &str, service: &str) -> anyhow::Result<SqliteStore> {
    let folder = PathBuf::from(folder);
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    Ok(SqliteStore::open(folder.join(format!("{service}.db"))).await?)
}

/// Each service has a schema of its own.
#[cfg(feature = "postgres")]
async fn postgres(url: &str, service: &str) -> anyhow::Result<saga_postgres::PostgresStore> {
    let options = saga_postgres::PostgresOptions::from_url(url)?.schema(&format!("saga_{service}"))?;
    Ok(saga_postgres::PostgresStore::connect_with(options).await?)
}

/// The one line for each broker.
async fn with_broker<S: SqlStore>(cli: &Cli, open: impl AsyncFn(&str) -> anyhow::Result<S>) -> anyhow::Result<()> {
    match &cli.broker {
        #[cfg(feature = "rabbitmq")]
        Some(url) => serve(cli, open, saga_amqp::AmqpTransport::connect(url).await?).await,
        #[cfg(not(feature = "rabbitmq"))]
        Some(_) => anyhow::bail!("--broker: this program was built without the feature `rabbitmq`"),
        None if cli.serve != Serve::All => anyhow::bail!("services in several processes need a --broker between them"),
        None => serve(cli, open, MemoryTransport::new()).await,
    }
}

async fn serve<S: SqlStore>(
    cli: &Cli,
    open: impl AsyncFn(&str) -> anyhow::Result<S>,
    transport: impl Transport + Clone,
) -> anyhow::Result<()> {
    let hotels = match cli.serve {
        Serve::Trips => None,
        Serve::All | Serve::Hotels => Some(start_hotels(open("hotels").await?, transport.clone()).await?),
    };
    let trips = match cli.serve {
        Serve::Hotels => None,
        Serve::All | Serve::Trips => Some(start_trips(open("trips").await?, transport, Providers::default()).await?),
    };
    let stopped = async { tokio::signal::ctrl_c().await.unwrap_or_default() };
    if let Some(trips) = &trips {
        let listener =
            TcpListener::bind(&cli.listen).await.with_context(|| format!("cannot listen on {}", cli.listen))?;
        println!("listening on http://{}", listener.local_addr()?);
        axum::serve(listener, routes(trips.clone())).with_graceful_shutdown(stopped).await?;
    } else {
        stopped.await;
    }
    if let Some(trips) = trips {
        trips.runtime.shutdown().await;
    }
    if let Some(hotels) = hotels {
        hotels.shutdown().await;
    }
    Ok(())
}
