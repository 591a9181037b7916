//! The booking service as a program.

use anyhow::{Context as _, bail};
use clap::Parser;
use saga_core::memory::MemoryTransport;
use saga_core::store::IdempotencyKeys;
use saga_core::transport::Transport;
use saga_sql::SqlStore;
use saga_sqlite::SqliteStore;
use tokio::net::TcpListener;
use travel::app::{start_hotels, start_trips};
use travel::companies::Companies;
use travel::http::routes;
use travel::providers::Providers;

/// Books trips: flights, a hotel and a car, or nothing.
#[derive(Parser)]
#[command(version)]
struct Cli {
    /// Which services run in this process
    #[arg(default_value = "all", value_parser = ["all", "trips", "hotels"])]
    serve: String,
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

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt().init();
    let cli = Cli::parse();
    // One line for each database. Each service has a schema or a file of its own.
    match cli.store.as_str() {
        #[cfg(feature = "postgres")]
        url if url.contains("://") => {
            with_broker(&cli, async |service| {
                let options = saga_postgres::PostgresOptions::from_url(url)?.schema(&format!("saga_{service}"))?;
                Ok(saga_postgres::PostgresStore::connect_with(options).await?)
            })
            .await
        }
        #[cfg(not(feature = "postgres"))]
        url if url.contains("://") => bail!(
            "this program was built for a folder, and not for the URL of a database; build it for PostgreSQL with \
             `cargo run -p travel --features postgres -- ..`"
        ),
        folder => {
            with_broker(&cli, async |service| {
                std::fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {folder}"))?;
                Ok(SqliteStore::open(format!("{folder}/{service}.db")).await?)
            })
            .await
        }
    }
}

/// One line for each broker.
async fn with_broker<S: SqlStore + IdempotencyKeys>(
    cli: &Cli,
    open: impl AsyncFn(&str) -> anyhow::Result<S>,
) -> anyhow::Result<()> {
    match &cli.broker {
        #[cfg(feature = "rabbitmq")]
        Some(url) => serve(cli, open, saga_amqp::AmqpTransport::connect(url).await?).await,
        #[cfg(not(feature = "rabbitmq"))]
        Some(_) => bail!(
            "--broker: this program was built without RabbitMQ; build it with `cargo run -p travel --features rabbitmq -- ..`"
        ),
        None if cli.serve != "all" => bail!("services in several processes need a --broker between them"),
        None => serve(cli, open, MemoryTransport::new()).await,
    }
}

async fn serve<S: SqlStore + IdempotencyKeys>(
    cli: &Cli,
    open: impl AsyncFn(&str) -> anyhow::Result<S>,
    transport: impl Transport + Clone,
) -> anyhow::Result<()> {
    let hotels = match cli.serve.as_str() {
        "trips" => None,
        _ => Some(start_hotels(open("hotels").await?, transport.clone()).await?),
    };
    let stopped = async || tokio::signal::ctrl_c().await.unwrap_or_default();
    if cli.serve == "hotels" {
        stopped().await;
    } else {
        let providers = Providers::at(Companies::default().listen().await?)?;
        let trips = start_trips(open("trips").await?, transport, providers).await?;
        let listener =
            TcpListener::bind(&cli.listen).await.with_context(|| format!("cannot listen on {}", cli.listen))?;
        println!("listening on http://{}", listener.local_addr()?);
        axum::serve(listener, routes(&trips, stopped())).with_graceful_shutdown(stopped()).await?;
        trips.runtime.shutdown().await;
    }
    if let Some(hotels) = hotels {
        hotels.shutdown().await;
    }
    Ok(())
}
