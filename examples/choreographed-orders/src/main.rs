//! The order process as three services that only know each other's events, without a saga definition.
//!
//! `cargo run -p choreographed-orders` runs it in one process on three SQLite files; `--database` and `--transport` select
//! PostgreSQL and RabbitMQ. See the README.

mod awkward;
mod books;
mod events;
mod input;
mod look;
mod report;
mod services;
mod shop;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use clap::Parser;
use saga_amqp::AmqpTransport;
use saga_core::memory::MemoryTransport;
use saga_core::transport::Transport;
use saga_postgres::{PostgresOptions, PostgresStore};
use saga_sqlite::SqliteStore;
use sqlx::postgres::PgConnectOptions;

use crate::books::Books;
use crate::look::Look;
use crate::services::FOLLOWER;
use crate::shop::Shop;

/// The names of the services, and of their databases.
const SERVICES: [&str; 3] = ["stock", "payments", "shipping"];

/// The order process as three services that only know each other's events.
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    /// Prints the orders of an earlier run, with `--data` or `--database`, instead of placing orders.
    #[command(subcommand)]
    look: Option<Look>,
    /// A file of orders, one JSON object per line, instead of the sample.
    #[arg(long, value_name = "FILE")]
    orders: Option<PathBuf>,
    /// A PostgreSQL database with one schema per service, instead of three SQLite files.
    #[arg(long, value_name = "URL", global = true)]
    database: Option<String>,
    /// A RabbitMQ broker, instead of the in-memory transport.
    #[arg(long, value_name = "URL")]
    transport: Option<String>,
    /// The folder for the SQLite files. Without it they are temporary.
    #[arg(long, value_name = "DIR", conflicts_with = "database", global = true)]
    data: Option<PathBuf>,
    /// How many seconds an order may take until it is shipped. An order that takes longer is undone.
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    ship_within: u64,
}

#[tokio::main]
async fn main() -> ExitCode {
    let errors = tracing_subscriber::filter::LevelFilter::ERROR;
    tracing_subscriber::fmt().with_max_level(errors).with_writer(std::io::stderr).init();
    match run(&Args::parse()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("choreographed-orders: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: &Args) -> anyhow::Result<bool> {
    if let Some(look) = &args.look {
        return look_at(look, args).await;
    }
    match &args.transport {
        None => on_transport(args, MemoryTransport::new()).await,
        Some(url) => {
            let transport = AmqpTransport::connect(url).await.map_err(|error| anyhow!("the broker: {error}"))?;
            on_transport(args, transport).await
        }
    }
}

/// The service that follows the orders has the timelines; a run may work on its store meanwhile.
async fn look_at(look: &Look, args: &Args) -> anyhow::Result<bool> {
    match (&args.database, &args.data) {
        (Some(url), _) => look.at(open_schema(url, FOLLOWER, PostgresOptions::read_only).await?).await,
        (None, Some(folder)) => {
            let file = folder.join(format!("{FOLLOWER}.db"));
            let store = SqliteStore::read_only(&file).await;
            look.at(store.map_err(|error| anyhow!("{}: {error}", file.display()))?).await
        }
        (None, None) => bail!("say where the orders are: `--data DIR` or `--database URL`"),
    }
}

async fn on_transport<T: Transport + Clone>(args: &Args, transport: T) -> anyhow::Result<bool> {
    let Some(url) = &args.database else {
        let folder = tempfile::tempdir()?;
        let folder = args.data.as_deref().unwrap_or(folder.path());
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let [stock, payments, shipping] = SERVICES.map(|service| folder.join(format!("{service}.db")));
        let open = |file: PathBuf| async move { open_file(&file).await };
        return play(args, [open(stock).await?, open(payments).await?, open(shipping).await?], transport).await;
    };
    let mut stores = Vec::new();
    for service in SERVICES {
        stores.push(open_schema(url, service, |options| options.connections_max(8)).await?);
    }
    let Ok(stores) = <[PostgresStore; 3]>::try_from(stores) else { bail!("there are three services") };
    play(args, stores, transport).await
}

async fn open_file(file: &Path) -> anyhow::Result<SqliteStore> {
    SqliteStore::open(file).await.map_err(|error| anyhow!("{}: {error}", file.display()))
}

/// A schema of the database, in which both the store's tables and the service's own are found.
async fn open_schema(
    url: &str,
    service: &str,
    more: impl FnOnce(PostgresOptions) -> PostgresOptions,
) -> anyhow::Result<PostgresStore> {
    // Without `//` all of it would be the name of a database, and errors say that name.
    let parsed = url.contains("://").then(|| url.parse().ok()).flatten();
    let options: PgConnectOptions =
        parsed.ok_or_else(|| anyhow!("--database takes a URL such as postgres://user:password@host:port/database"))?;
    let schema = format!("choreographed_{service}");
    let options = PostgresOptions::new(options.options([("search_path", &schema)])).schema(&schema)?;
    PostgresStore::connect_with(more(options)).await.map_err(|error| anyhow!("the database: {error}"))
}

/// Places the orders, plants the faults, and prints the results. Returns whether the audit succeeded.
async fn play<S: Books, T: Transport + Clone>(args: &Args, stores: [S; 3], transport: T) -> anyhow::Result<bool> {
    let orders = input::read(args.orders.as_deref())?;
    let shop = Shop::start(stores, &transport, Duration::from_secs(args.ship_within)).await?;
    for order in &orders {
        shop.front().publish(&order.key, &order.placed).await?;
    }
    let cases = awkward::provoke(&shop, &transport).await?;
    let mut ended = BTreeMap::new();
    for key in orders.iter().map(|order| order.key.as_str()).chain(cases.iter().map(|case| case.key)) {
        ended.insert(key.to_owned(), shop.settled(key).await?);
    }
    let journal = shop.journal().await?;
    for case in &cases {
        if let Some(timeline) = ended.get(case.key) {
            report::show(case, timeline, &journal);
        }
    }
    let is_shipped = |key: &str| journal.iter().any(|entry| entry.what == "ship-order" && entry.order == key);
    let shipped = orders.iter().filter(|order| is_shipped(&order.key)).count();
    let is_late = |key: &str| ended.get(key).is_some_and(report::is_late);
    let late = orders.iter().filter(|order| is_late(&order.key)).count();
    let late = if late > 0 { format!(", {late} of them since they were not shipped in time") } else { String::new() };
    println!("{} orders: {shipped} shipped, {} came to nothing{late}", orders.len(), orders.len() - shipped);
    let letters = shop.dead_letters().await?;
    let problems = report::problems(&ended, &journal);
    shop.stop().await;
    for problem in &problems {
        eprintln!("wrong: {problem}");
    }
    println!("dead letters: {letters}; wrong in the books: {}", problems.len());
    Ok(problems.is_empty() && letters == 0)
}
